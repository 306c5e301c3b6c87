import { signal } from "@preact/signals";

/** The colours: those of the system, or one of two. The browser keeps the choice. */
const themes = { system: "System", light: "Light", dark: "Dark" } as const;
type Theme = keyof typeof themes;

const key = "watchfire-theme";

/** Returns the stored choice. A browser may refuse access to its storage. */
function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(key);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}

/** The chosen colours. */
export const theme = signal<Theme>(storedTheme());

function show(chosen: Theme): void {
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
show(theme.value);

function choose(chosen: Theme): void {
  theme.value = chosen;
  show(chosen);
  try {
    localStorage.setItem(key, chosen);
  } catch {
    // The choice then lasts until the page is loaded again.
  }
}

export function ThemeChoice() {
  return (
    <select aria-label="Theme" value={theme.value} onChange={(event) => choose(event.currentTarget.value as Theme)}>
      {Object.entries(themes).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}
