import { join } from "node:path";
import type { Plugin } from "esbuild";
import { buildInService } from "../../runtime/bundle/build-service.ts";
import { bundleConsole } from "../../runtime/console/assets.ts";
import { consoleMade, filesInside, guestScriptMade, httpRequired } from "./plugins.ts";

export const runtimeSources = join(import.meta.dirname, "../../runtime");

/** Options of one form in which the runtime is shipped. */
export interface BundleOptions {
  /** Entry files by program name: `bin/watchfire.js`, and further programs. */
  readonly programs: Readonly<Record<"watchfire", string>>;
  /** Plugins for the differences between this form and the sources. */
  readonly plugins: Plugin[];
  /** Packages that are installed alongside, in addition to esbuild and isolated-vm. */
  readonly external?: readonly string[];
}

/**
 * Bundles the runtime into JavaScript in `folder`, laid out so that relative paths work as in the sources: `bin/watchfire.js`,
 * `sandbox/executor/main.js`, `sandbox/positions/thread.js`, and the code that they share in `sandbox`. Returns the input files.
 */
export async function bundleRuntime(folder: string, options: BundleOptions): Promise<string[]> {
  const pages = await bundleConsole();
  const { metafile } = await buildInService({
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
      // CommonJS packages load Node's modules by `require`.
      js: `import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);`,
    },
    plugins: [guestScriptMade, consoleMade(pages.assets), ...options.plugins, httpRequired, filesInside],
  });
  return [...Object.keys(metafile.inputs), ...pages.inputs];
}
