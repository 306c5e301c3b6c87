import type { Plugin } from "esbuild";
import { buildInService } from "./build-service.ts";
import { placed } from "./program-place.ts";

/**
 * A program of the runtime's own, whose file is `main`, as one script in JavaScript for the standard input of a Node.
 * To strip the types of its files anew would take each such process 85 ms of CPU, half of its start. Node's compile
 * cache is closed to a process without write access.
 */
export async function programScript(main: string, plugins: Plugin[] = []): Promise<string> {
  return placed(await programBody(main, plugins), main);
}

/** The script without its place: for a package, which makes it when it is packed. */
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
