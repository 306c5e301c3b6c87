import type { BuildContext, BuildOptions, BuildResult } from "esbuild";
import { context } from "./esbuild.ts";
import { type Imports, importsOf } from "./imports.ts";

/** Build options with which esbuild is called. */
export type HandlerOptions = BuildOptions & { write: false; metafile: true };

/**
 * esbuild keeps whatever it parsed as long as its context exists, so a new context is created after this many builds, or bytes of
 * their files.
 */
const mostBuilds = 64;
const mostBytes = 1024 * 1024;

/**
 * Consecutive builds that differ only in their files. esbuild processes the settings once for many builds; for a small function
 * they are a third of its work.
 */
export class Rebuilds {
  private readonly options: HandlerOptions;
  private current:
    | { readonly context: Promise<BuildContext<HandlerOptions>>; builds: number; bytes: number }
    | undefined;
  /** Imports of the current build. */
  private imports: Imports | undefined;

  constructor(options: HandlerOptions) {
    this.options = options;
  }

  private open(first: Imports): NonNullable<Rebuilds["current"]> {
    const plugins = [importsOf(() => this.imports ?? first)];
    return { context: context({ ...this.options, plugins }), builds: 0, bytes: 0 };
  }

  /** Must not be called before the previous build has ended. @throws BuildFailure as esbuild's `build` does */
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
      // A failed build may have left anything in the context.
      if (isSpent) {
        this.current = undefined;
        await (await current.context).dispose();
      }
    }
  }
}
