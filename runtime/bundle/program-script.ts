import type { Plugin } from "esbuild";
import { buildInService } from "./build-service.ts";
import { placed } from "./program-place.ts";

/**
 * Bundles one of the runtime's own programs, whose file is `main`, into a JavaScript script for the standard input of a Node
 * process. Stripping the types of its files would take each such process 85 ms of CPU, half of its start. Node's compile cache is
 * not available to a process without write access.
 */
export async function programScript(main: string, plugins: Plugin[] = []): Promise<string> {
  return placed(await programBody(main, plugins), main);
}

/** Returns the script without its path: for a package, which bundles it when it is packed. */
export async function programBody(main: string, plugins: Plugin[] = []): Promise<string> {
  const result = await buildInService({
    entryPoints: [main],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node24",
    minifyWhitespace: true,
    legalComments: "none",
    logLevel: "silent",
    plugins,
    define: { "import.meta.url": "programUrl" },
  });
  return result.outputFiles[0]?.text ?? "";
}
