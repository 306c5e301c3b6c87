import type { BuildContext, BuildOptions, BuildResult } from "esbuild";
import { context } from "./esbuild.ts";
import { type Imports, importsOf } from "./imports.ts";

/** What is asked of esbuild for each build. */
export type HandlerOptions = BuildOptions & { write: false; metafile: true };

/** esbuild keeps what it parsed as long as its context is there: after so many builds, or bytes of their files, comes the next. */
const mostBuilds = 64;
const mostBytes = 1024 * 1024;

/**
 * Builds that differ in their files alone, one after another. esbuild takes the settings once for many of them: for a small
 * function that is a third of its work.
 */
export class Rebuilds {
  private readonly options: HandlerOptions;
  private current:
    | { readonly context: Promise<BuildContext<HandlerOptions>>; builds: number; bytes: number }
    | undefined;
  /** Of the build that is under way. */
  private imports: Imports | undefined;

  constructor(options: HandlerOptions) {
    this.options = options;
  }

  private open(first: Imports): NonNullable<Rebuilds["current"]> {
    const plugins = [importsOf(() => this.imports ?? first)];
    return { context: context({ ...this.options, plugins }), builds: 0, bytes: 0 };
  }

  /** Not before the build before has ended. @throws BuildFailure as esbuild's `build` does */
  async build(imports: Imports): Promise<BuildResult<HandlerOptions>> {
    this.imports = imports;
    this.current ??= this.open(imports);
    const { current } = this;
    let isSpent = true;
    try {
      const result = await (await current.context).rebuild();
      current.builds++;
      for (const { bytes } of Object.values(result.metafile.inputs)) current.bytes += bytes;
      isSpent = current.builds >= mostBuilds || current.bytes >= mostBytes;
      return result;
    } finally {
      // Of a build that failed nobody knows what it keeps.
      if (isSpent) {
        this.current = undefined;
        await (await current.context).dispose();
      }
    }
  }
}
