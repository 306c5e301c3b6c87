/** The declarations of a class on a light and on a dark page. */
interface Paint {
  readonly light: string;
  readonly dark: string;
}

/** The drawing style of all pictures of the guide, by class. Colours are those of GitHub's pages, light and dark. */
export const paints: Readonly<Record<string, Paint>> = {
  page: { light: "fill:#ffffff", dark: "fill:#0d1117" },
  ink: { light: "fill:#1f2328", dark: "fill:#e6edf3" },
  soft: { light: "fill:#57606a", dark: "fill:#9198a1" },
  box: { light: "fill:#ffffff;stroke:#57606a", dark: "fill:#0d1117;stroke:#9198a1" },
  zone: { light: "fill:#f6f8fa;stroke:#d0d7de", dark: "fill:#161b22;stroke:#3d444d" },
  guest: { light: "fill:#fff8f0;stroke:#e8c9a8", dark: "fill:#261d13;stroke:#6b4f2e" },
  line: { light: "fill:none;stroke:#57606a", dark: "fill:none;stroke:#9198a1" },
  tip: { light: "fill:#57606a", dark: "fill:#9198a1" },
  ours: { light: "fill:#0969da", dark: "fill:#4493f8" },
  peer: { light: "fill:#8c959f", dark: "fill:#656c76" },
};

const rules = (of: keyof Paint): string =>
  Object.entries(paints)
    .map(([name, paint]) => `.${name}{${paint[of]}}`)
    .join("");

/** The `<style>` element of every picture. A viewer that prefers dark colours gets the second rule set. */
export const pictureStyle = `<style>${rules("light")}@media(prefers-color-scheme:dark){${rules("dark")}}</style>`;
