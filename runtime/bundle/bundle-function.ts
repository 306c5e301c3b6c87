import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { type BuildOptions, type BuildResult, build } from "esbuild";
import type { FunctionManifest } from "../manifest/function.ts";
import { placeholders, refuseAbsentNames } from "./absent-names.ts";
import { refuseMessages } from "./build-fault.ts";
import type { Bundle } from "./bundle.ts";
import { refusedImports } from "./refused-imports.ts";
import { displayPath } from "./source-path.ts";

/** The global through which a bundle hands over its default export; the guest's bootstrap takes it away again. */
export const acceptHandler = "__watchfire_accept";

/** The script's name inside the isolate: what V8 puts into stacks. */
export const scriptName = (functionName: string): string => `app:///${functionName}/handler.js`;

/**
 * Bundles a function's handler and all it imports into one script for an isolate.
 * TypeScript and JavaScript; npm packages installed beside the functions are included.
 * Throws a WatchfireError with file, line and column for anything an isolate could not run: imports of Node's
 * built-in modules, native addons, imports whose name is only known at run time, names that exist in Node alone.
 */
export async function bundleFunction(manifest: Pick<FunctionManifest, "name" | "handler">): Promise<Bundle> {
  // A first build marks the free uses of absent names. Only where a package uses one is a second, unmarked build needed.
  let result = await bundle(manifest.handler, placeholders);
  if (refuseAbsentNames(result.script, result.map, manifest.handler)) result = await bundle(manifest.handler, {});

  const script = `${result.script}\n;undefined`;
  return {
    script,
    sourceMap: withDisplayPaths(result.map, manifest.handler),
    hash: createHash("sha256").update(script).digest("hex"),
    inputs: result.inputs,
    usesOldObject: script.includes("oldObject"),
  };
}

interface Built {
  readonly script: string;
  readonly map: string;
  readonly inputs: readonly string[];
}

async function bundle(handler: string, define: Record<string, string>): Promise<Built> {
  const folder = dirname(handler);
  let result: BuildResult<BuildOptions & { write: false; metafile: true }>;
  try {
    result = await build({
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
      format: "iife",
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
      plugins: [refusedImports(createRequire(import.meta.url).resolve)],
    });
  } catch (error) {
    throw refuseMessages(error, handler, entrySource);
  }
  refuseMessages({ errors: [], warnings: result.warnings }, handler, entrySource);
  const text = (suffix: string) => result.outputFiles.find((file) => file.path.endsWith(suffix))?.text ?? "";
  return {
    script: text(".js"),
    map: text(".js.map"),
    inputs: Object.keys(result.metafile.inputs)
      .filter((input) => input !== entrySource)
      .map((input) => resolve(folder, input)),
  };
}

/** The name of the generated entry in messages and maps. */
const entrySource = "watchfire-entry";

/** The map with each source as a person would name it: below the working directory relative to it, else absolute. */
function withDisplayPaths(map: string, handler: string): string {
  const parsed = JSON.parse(map) as { sources: string[] };
  return JSON.stringify({
    ...parsed,
    sources: parsed.sources.map((source) => displayPath(source, dirname(handler))),
  });
}
