import { fileURLToPath } from "node:url";
import { buildInService } from "../bundle/build-service.ts";

/** What a browser loads. */
export interface ConsoleAssets {
  readonly script: string;
  readonly style: string;
}

/**
 * Bundles the console's script and style from their sources. A package and an image contain the result in the place of this
 * function.
 */
export async function consoleAssets(): Promise<ConsoleAssets> {
  const result = await buildInService({
    entryPoints: [
      fileURLToPath(new URL("./client/main.tsx", import.meta.url)),
      fileURLToPath(new URL("./client/style.css", import.meta.url)),
    ],
    bundle: true,
    write: false,
    outdir: "console",
    format: "esm",
    platform: "browser",
    target: ["chrome120", "firefox120", "safari17"],
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    legalComments: "none",
    logLevel: "silent",
  });
  const textOf = (ending: string) => result.outputFiles.find(({ path }) => path.endsWith(ending))?.text ?? "";
  return { script: textOf(".js"), style: textOf(".css") };
}
