import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Plugin } from "esbuild";
import { material } from "../../runtime/cli/new-project/material.ts";
import { guestScript } from "../../runtime/sandbox/host/guest-script.ts";

/** The guest's script is made here, instead of at each start. */
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

/** The templates are read here, and put inside. */
export const templatesInside: Plugin = {
  name: "templates",
  setup({ onLoad }) {
    onLoad({ filter: /\/new-project\/material\.ts$/ }, () => ({
      contents: `export const material = ${JSON.stringify(material)};`,
    }));
  },
};

/**
 * `node:http` comes by `require`. An `import` of it makes Node read all that it exports. For `WebSocket` Node then loads
 * an undici of its own, which takes 13 MB and 30 ms.
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

/** A file that a module names beside it without reading it there: it is only written. */
const outside = ["function.schema.json"];

/** Files that a module reads from beside it are put into it. */
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
