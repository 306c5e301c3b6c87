import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { guestScript, guestScriptName } from "../../runtime/sandbox/guest-script.host.ts";

const runtime = join(import.meta.dirname, "../../runtime");

/** What a pod and its operator need. The embedded cluster, and what works on a project's sources, stay in the checkout. */
const commands = ["start", "executor", "validate", "dead-letters", "rbac", "doctor"];

/**
 * Bundles the runtime into JavaScript in `folder`, laid out so that code finds its neighbours where the sources have them:
 * `bin/watchfire.js`, `sandbox/executor/main.js`, and beside the latter what the two have in common.
 * Gives the files that went in.
 */
export async function bundleRuntime(folder: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: {
      "bin/watchfire": join(import.meta.dirname, "entry.ts"),
      "sandbox/executor/main": join(runtime, "sandbox/executor/main.ts"),
    },
    outdir: folder,
    chunkNames: "sandbox/[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: `node${process.versions.node}`,
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: true,
    legalComments: "none",
    metafile: true,
    external: ["esbuild", "isolated-vm"],
    banner: {
      // Packages in CommonJS ask for Node's modules by `require`.
      js: `import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);`,
    },
    plugins: [guestScriptMade, noBuilders, commandsOfThePod, kubeconfigAlone, filesInside],
  });
  return Object.keys(metafile.inputs);
}

/** The guest's script is made here, instead of at each start. */
const guestScriptMade: Plugin = {
  name: "guest-script",
  setup({ onLoad }) {
    onLoad({ filter: /guest-script\.host\.ts$/ }, async () => ({
      contents: [
        `const script = ${JSON.stringify(await guestScript())};`,
        `export const guestScriptName = ${JSON.stringify(guestScriptName)};`,
        "export const guestScript = async () => script;",
      ].join("\n"),
    }));
  },
};

/** Nothing is built beside a pod's token: the image has no compiler. */
const noBuilders: Plugin = {
  name: "builders",
  setup({ onLoad }) {
    onLoad({ filter: /\/bundle\/builders\.ts$/ }, () => ({
      resolveDir: join(runtime, "bundle"),
      contents: `
        import { WatchfireError } from "../errors.ts";
        export class Builders {
          constructor({ folder }) { this.folder = folder; }
          async bundle() {
            throw new WatchfireError("WF_BUILD_SOURCES", { what: "the image builds nothing", place: { file: this.folder } });
          }
          warm() {}
          close() {}
        }`,
    }));
  },
};

/** The other commands say that they are not here. */
const commandsOfThePod: Plugin = {
  name: "commands",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/[\w-]+\.ts$/ }, ({ kind, path, importer }) => {
      const name = path.slice(2, -3);
      const isCommand = kind === "dynamic-import" && importer.endsWith("/cli/main.ts");
      return isCommand && !commands.includes(name) ? { path: name, namespace: "absent" } : undefined;
    });
    onLoad({ filter: /.*/, namespace: "absent" }, ({ path: name }) => ({
      resolveDir: join(runtime, "cli"),
      contents: `
        import { WatchfireError } from "../errors.ts";
        const refuse = () => {
          throw new WatchfireError("WF_CLI_USAGE", {
            what: "the image does not have this command", actual: "${name}", hint: "run it with npx in a checkout" });
        };
        const command = { name: "${name}", summary: "not in the image", get options() { return refuse(); }, run: refuse };
        export { command as ${camelCase(name)} };`,
    }));
  },
};

const camelCase = (name: string): string => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Of the client the runtime takes the kubeconfig alone: its hundreds of generated classes stay out. */
const kubeconfigAlone: Plugin = {
  name: "kubeconfig",
  setup({ onResolve }) {
    const client = dirname(createRequire(`${runtime}/`).resolve("@kubernetes/client-node"));
    onResolve({ filter: /^@kubernetes\/client-node$/ }, () => ({ path: join(client, "config.js") }));
  },
};

/** A file that a module names beside it without reading it there: it is only written. */
const outside = ["function.schema.json"];

/** Files that a module reads from beside it are put into it. */
const filesInside: Plugin = {
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
