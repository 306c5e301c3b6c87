import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import type { BuildFailure, BuildOptions, BuildResult } from "esbuild";
import type { WatchfireError } from "../errors.ts";
import { buildFaults } from "./build-fault.ts";
import { buildInService } from "./build-service.ts";
import { refusedImports } from "./refused-imports.ts";
import { entrySource } from "./source-path.ts";

/** The global through which a bundle hands over its default export; the guest's bootstrap takes it away again. */
export const acceptHandler = "__watchfire_accept";

/** What one build gives. */
export interface Build {
  /** Undefined where it failed. */
  readonly output?: Output;
  /** What an isolate could not run, as far as this build came. */
  readonly faults: readonly WatchfireError[];
}

export interface Output {
  readonly script: string;
  readonly map: string;
  /** The files that went in, absolute. */
  readonly inputs: readonly string[];
}

export interface BuildWay {
  /** esbuild's: expressions that stand for others. */
  readonly define: Readonly<Record<string, string>>;
  /** Goes on past imports that fail and a top-level await, for what else is wrong; the output is of no use. */
  readonly lenient?: boolean;
}

/** Makes one script of a handler and all it imports. Rejects only for a fault of esbuild's own: see `buildInService`. */
export async function buildHandler(handler: string, { define, lenient = false }: BuildWay): Promise<Build> {
  const folder = dirname(handler);
  let result: BuildResult<BuildOptions & { write: false; metafile: true }>;
  try {
    result = await buildInService({
      stdin: {
        contents: `import handler from ${JSON.stringify(handler)};\n${acceptHandler}(handler);`,
        resolveDir: folder,
        sourcefile: entrySource,
      },
      absWorkingDir: folder,
      outfile: resolve(folder, "handler.bundle.js"),
      bundle: true,
      write: false,
      metafile: true,
      format: lenient ? "esm" : "iife",
      platform: "browser",
      conditions: ["worker"],
      // V8 13.6 is Chrome 136.
      target: "chrome136",
      keepNames: true,
      sourcemap: "external",
      legalComments: "none",
      charset: "utf8",
      logLevel: "silent",
      // The functions folder may belong to a project with settings for quite other code.
      tsconfigRaw: {
        compilerOptions: { target: "esnext", useDefineForClassFields: true, verbatimModuleSyntax: false },
      },
      define: { ...define, "process.env.NODE_ENV": '"production"' },
      logOverride: {
        "unsupported-dynamic-import": "warning",
        "unsupported-require-call": "warning",
        "indirect-require": "warning",
      },
      plugins: [refusedImports(createRequire(import.meta.url).resolve, lenient)],
    });
  } catch (error) {
    const { errors, warnings } = error as Partial<BuildFailure>;
    if (!errors || !warnings) throw error;
    return { faults: buildFaults({ errors, warnings }, handler, entrySource) };
  }
  const text = (suffix: string) => result.outputFiles.find((file) => file.path.endsWith(suffix))?.text ?? "";
  return {
    faults: buildFaults(result, handler, entrySource),
    output: {
      script: text(".js"),
      map: text(".js.map"),
      inputs: Object.keys(result.metafile.inputs)
        .filter((input) => input !== entrySource)
        .map((input) => resolve(folder, input)),
    },
  };
}
