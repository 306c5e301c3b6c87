import type { BuildFailure, BuildResult, Metafile } from "esbuild";
import type { WatchfireError } from "../../base/errors.ts";
import { mapLimit, scriptLimit } from "../limits.ts";
import { acceptHandler } from "../script-bundle.ts";
import { SourceFault } from "../source-fault.ts";
import { entrySource, isInstalled } from "../source-path.ts";
import { placeholders } from "./absent-names.ts";
import { type BuildContext, buildFaults, emptyHandler } from "./build-fault.ts";
import { build } from "./esbuild.ts";
import { type Imports, importsOf } from "./imports.ts";
import type { Output, SourceMap } from "./output.ts";
import { type HandlerOptions, Rebuilds } from "./rebuilds.ts";

/** Result of one build. */
export interface HandlerBuild {
  /** `undefined` if it failed. */
  readonly output?: Output;
  /** Code that an isolate could not run, as far as this build got. */
  readonly faults: readonly WatchfireError[];
}

interface BuildWay {
  readonly subject: BuildContext;
  /** Marks absent names: the output is searched for them. */
  readonly marked: boolean;
  /** Continues past failed imports and a top-level await, to find further faults; the output is useless. */
  readonly lenient: boolean;
}

const optionsOf = ({ marked, lenient }: Pick<BuildWay, "marked" | "lenient">): HandlerOptions => ({
  stdin: {
    contents: `import handler from "./handler";\n${acceptHandler}(handler);`,
    sourcefile: entrySource,
  },
  absWorkingDir: "/",
  outfile: "/handler.js",
  bundle: true,
  write: false,
  metafile: true,
  format: lenient ? "esm" : "iife",
  platform: "browser",
  // V8 13.6 is Chrome 136.
  target: "chrome136",
  keepNames: true,
  sourcemap: "external",
  legalComments: "none",
  charset: "utf8",
  logLevel: "silent",
  // The functions folder may belong to a project with settings for quite different code.
  tsconfigRaw: {
    compilerOptions: { target: "esnext", useDefineForClassFields: true, verbatimModuleSyntax: false },
  },
  define: { ...(marked && placeholders), "process.env.NODE_ENV": '"production"' },
  logOverride: {
    "unsupported-dynamic-import": "warning",
    "unsupported-require-call": "warning",
    "indirect-require": "warning",
  },
});

/** Used by almost all builds. */
const usual = new Rebuilds(optionsOf({ marked: true, lenient: false }));

/**
 * Builds one script from a handler and everything it imports. Rejects only for an internal error of esbuild, or with a
 * SourceFault.
 */
export async function buildHandler({ subject, marked, lenient }: BuildWay): Promise<HandlerBuild> {
  const { imports } = subject;
  let result: BuildResult<HandlerOptions>;
  try {
    result =
      marked && !lenient
        ? await usual.build(imports)
        : await build({ ...optionsOf({ marked, lenient }), plugins: [importsOf(() => imports)] });
  } catch (error) {
    const { errors, warnings } = error as Partial<BuildFailure>;
    if (!errors || !warnings) throw error;
    return { faults: buildFaults({ errors, warnings }, subject) };
  }
  const contents = (suffix: string) => result.outputFiles.find(({ path }) => path.endsWith(suffix))?.contents;
  const script = contents(".js");
  const map = contents(".js.map");
  if (!script || !map) throw new Error("esbuild gave no script");
  if (script.length > scriptLimit) throw tooLarge("a script", script.length);
  if (map.length > mapLimit) throw tooLarge("a source map", map.length);
  const faults = buildFaults(result, subject);
  return {
    faults: faults.length === 0 && exportsNothing(result.metafile, subject) ? [emptyHandler(subject)] : faults,
    output: {
      script: textOf(script),
      map: ownSources(JSON.parse(textOf(map)) as SourceMap, Object.keys(result.metafile.inputs), subject.imports),
    },
  };
}

/** esbuild treats a file without imports and exports as a CommonJS module, whose default export is an empty object. */
const exportsNothing = ({ inputs }: Metafile, { imports, handler }: BuildContext): boolean => {
  const input = imports.entry === undefined ? undefined : inputs[imports.entry];
  return input !== undefined && input.format === undefined && /[jt]sx?$/.test(handler);
};

/**
 * Returns the map with its files' real paths, and without the text of packages, which is never shown: a map above
 * `appliedMapLimit` is not applied to stacks. Throws if an input was not provided by this build.
 */
function ownSources(map: SourceMap, inputs: readonly string[], imports: Imports): SourceMap {
  const fileOf = (name: string): string => {
    if (name === entrySource || imports.isEmpty(name)) return name;
    const file = imports.fileOf(name);
    if (file === undefined)
      throw new SourceFault("WF_BUNDLE_OUTSIDE", "the bundle has a file that is not among the sources");
    return file;
  };
  inputs.forEach(fileOf);
  const sources = map.sources.map(fileOf);
  const sourcesContent = map.sourcesContent?.map((text, index) => (isInstalled(sources[index] ?? "") ? null : text));
  return { ...map, sources, ...(sourcesContent && { sourcesContent }) };
}

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");

const tooLarge = (what: string, bytes: number): SourceFault =>
  new SourceFault("WF_BUNDLE_LIMIT", `the build gives ${what} of ${Math.ceil(bytes / 2 ** 20)} MiB`);
