import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import type { Plugin } from "esbuild";
import { guestScript, guestScriptName } from "../../runtime/sandbox/host/guest-script.ts";
import { readMaterial } from "../create/templates.ts";

/** The guest's script is made here, instead of at each start. */
export const guestScriptMade: Plugin = {
  name: "guest-script",
  setup({ onLoad }) {
    onLoad({ filter: /host\/guest-script\.ts$/ }, async () => ({
      contents: [
        `const script = ${JSON.stringify(await guestScript())};`,
        `export const guestScriptName = ${JSON.stringify(guestScriptName)};`,
        "export const guestScript = async () => script;",
      ].join("\n"),
    }));
  },
};

/** The templates are read here, and put inside. */
export const templatesInside: Plugin = {
  name: "templates",
  setup({ onLoad }) {
    onLoad({ filter: /\/create\/material\.ts$/ }, () => ({
      contents: `export const material = ${JSON.stringify(readMaterial())};`,
    }));
  },
};

/**
 * Of the client the runtime takes the kubeconfig alone: its hundreds of generated classes stay out. The kubeconfig asks
 * their index for the two that a connection of the client's own is configured with.
 */
export const kubeconfigAlone: Plugin = {
  name: "kubeconfig",
  setup({ onResolve, onLoad }) {
    const client = dirname(
      createRequire(join(import.meta.dirname, "../../runtime/")).resolve("@kubernetes/client-node"),
    );
    const kubeconfig = join(client, "config.js");
    onResolve({ filter: /^@kubernetes\/client-node$/ }, () => ({ path: kubeconfig }));
    onResolve({ filter: /^\.\/gen\/index\.js$/ }, ({ importer, path }) =>
      importer === kubeconfig ? { path, namespace: "generated" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "generated" }, () => ({
      contents: 'export * from "./configuration.js"; export * from "./servers.js";',
      resolveDir: join(client, "gen"),
    }));
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
