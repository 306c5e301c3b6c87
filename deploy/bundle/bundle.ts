import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { filesInside, guestScriptMade, httpRequired } from "./plugins.ts";

export const runtimeSources = join(import.meta.dirname, "../../runtime");

/** A form in which the runtime leaves the checkout. */
export interface BundleOptions {
  /** The program `bin/watchfire.js`, and others beside it, by name; each is made of a file. */
  readonly programs: Readonly<Record<"watchfire", string>>;
  /** What this form does otherwise than the sources. */
  readonly plugins: Plugin[];
  /** Packages that are installed beside it, besides esbuild and isolated-vm. */
  readonly external?: readonly string[];
}

/**
 * Bundles the runtime into JavaScript in `folder`, laid out so that code finds its neighbours where the sources have
 * them. That is `bin/watchfire.js`, `sandbox/executor/main.js`, `sandbox/positions/thread.js`, and in `sandbox` the code that they share. Gives
 * the files that went in.
 */
export async function bundleRuntime(folder: string, options: BundleOptions): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: {
      ...Object.fromEntries(Object.entries(options.programs).map(([name, file]) => [`bin/${name}`, file])),
      "sandbox/executor/main": join(runtimeSources, "sandbox/executor/main.ts"),
      "sandbox/positions/thread": join(runtimeSources, "sandbox/positions/thread.ts"),
    },
    outdir: folder,
    chunkNames: "sandbox/[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: true,
    legalComments: "none",
    metafile: true,
    external: ["esbuild", "isolated-vm", ...(options.external ?? [])],
    banner: {
      // Packages in CommonJS ask for Node's modules by `require`.
      js: `import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);`,
    },
    plugins: [guestScriptMade, ...options.plugins, httpRequired, filesInside],
  });
  return Object.keys(metafile.inputs);
}
