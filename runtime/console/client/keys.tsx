import { navigate } from "./route.tsx";

/** The pages of the navigation, in the order of their keys: 1 opens the first. */
export const places = [
  ["/", "Overview"],
  ["/runs", "Runs"],
  ["/errors", "Errors"],
  ["/dead-letters", "Dead letters"],
  ["/sources", "Sources"],
  ["/explain", "Explain"],
  ["/config", "Configuration"],
] as const;

const dialog = (): HTMLDialogElement | null => document.querySelector("dialog#keys");

/** The list of keys, which `?` and the button in the header open. */
export function Keys() {
  const rows = [
    ...places.map(([, text], index) => [String(index + 1), `opens ${text}`] as const),
    ["/", "moves to the first filter"] as const,
    ["?", "shows this list"] as const,
    ["Esc", "closes it"] as const,
  ];
  return (
    <dialog id="keys" aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl>
        {rows.map(([name, does]) => (
          <div key={name}>
            <dt>
              <kbd>{name}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

export const showKeys = (): void => dialog()?.showModal();

addEventListener("keydown", (event) => {
  const isTyping = (event.target as Element).matches("input, select, textarea");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  // A confirmation waits for its answer, and the login has no pages.
  if (document.querySelector("dialog[open]") || !document.querySelector("nav")) return;
  const [href] = places[Number(event.key) - 1] ?? [];
  if (href !== undefined) navigate(href);
  else if (event.key === "?") showKeys();
  else if (event.key === "/") {
    const filter = document.querySelector<HTMLElement>("main input, main select");
    if (filter) event.preventDefault();
    filter?.focus();
  }
});
