import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Plugin } from "esbuild";
import { material } from "../../runtime/cli/new-project/material.ts";
import type { ConsoleAssets } from "../../runtime/console/assets.ts";
import { guestScript } from "../../runtime/sandbox/host/guest-script.ts";

/** Embeds the guest's script, instead of bundling it at each start. */
export const guestScriptMade: Plugin = {
  name: "guest-script",
  setup({ onLoad }) {
    onLoad({ filter: /host\/guest-script\.ts$/ }, async () => ({
      contents: [
        `const script = ${JSON.stringify(await guestScript())};`,
        "export const guestScript = async () => script;",
      ].join("\n"),
    }));
  },
};

/** Embeds the console's script and style, instead of bundling them when a page is first asked for. */
export const consoleMade = (assets: ConsoleAssets): Plugin => ({
  name: "console",
  setup({ onLoad }) {
    onLoad({ filter: /\/console\/assets\.ts$/ }, () => ({
      contents: `export const consoleAssets = async () => (${JSON.stringify(assets)});`,
    }));
  },
});

/** Embeds the templates. */
export const templatesInside: Plugin = {
  name: "templates",
  setup({ onLoad }) {
    onLoad({ filter: /\/new-project\/material\.ts$/ }, () => ({
      contents: `export const material = ${JSON.stringify(material)};`,
    }));
  },
};

/**
 * Loads `node:http` by `require`. An `import` would make Node read all its exports, and for `WebSocket` Node then loads its
 * built-in undici, which takes 13 MB and 30 ms.
 */
export const httpRequired: Plugin = {
  name: "http",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?http$/ }, ({ kind }) =>
      kind === "import-statement" ? { path: "http", namespace: "required" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "required" }, () => ({ contents: 'module.exports = require("node:http");' }));
  },
};

/** Files that a module refers to without reading them: only their paths are used. */
const outside = ["function.schema.json"];

/** Embeds the files that a module reads from its own folder. */
export const filesInside: Plugin = {
  name: "files",
  setup({ onLoad }) {
    onLoad({ filter: /\/runtime\/.*\.ts$/ }, ({ path: file }) => {
      const text = readFileSync(file, "utf8");
      if (!text.includes("import.meta.url")) return undefined;
      const contents = text.replace(
        /readFileSync\(new URL\("([^"]+)", import\.meta\.url\), "utf8"\)/g,
        (_, beside: string) => JSON.stringify(readFileSync(resolve(dirname(file), beside), "utf8")),
      );
      const left = contents.match(/new URL\("([^"]+)", import\.meta\.url\)/);
      if (left && !outside.includes(left[1] ?? "")) throw new Error(`${file}: ${left[0]} leads nowhere in a bundle`);
      return { contents, loader: "ts" };
    });
  },
};
