import { fileURLToPath } from "node:url";
import { buildInService } from "../bundle/build-service.ts";

/** The files that a browser loads. */
export interface ConsoleAssets {
  readonly script: string;
  readonly style: string;
}

/** The assets, and the files that they are made from. */
interface ConsoleBundle {
  readonly assets: ConsoleAssets;
  readonly inputs: readonly string[];
}

/** Returns the assets, bundled from their sources. A package and an image contain them in the place of this module. */
export const consoleAssets = async (): Promise<ConsoleAssets> => (await bundleConsole()).assets;

/** Bundles the console's script and style. */
export async function bundleConsole(): Promise<ConsoleBundle> {
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
    metafile: true,
  });
  const textOf = (ending: string) => result.outputFiles.find(({ path }) => path.endsWith(ending))?.text ?? "";
  return {
    assets: { script: textOf(".js"), style: textOf(".css") },
    inputs: Object.keys(result.metafile?.inputs ?? {}),
  };
}
