import { isAbsolute, join, relative } from "node:path";
import { WatchfireError } from "../../base/errors.ts";
import type { BuildRequest } from "../builder-wire.ts";
import { faultLimit } from "../limits.ts";
import { SourceFault } from "../source-fault.ts";
import { displayPath } from "../source-path.ts";
import { isBelow, Sources } from "../sources.ts";
import { usesOfAbsentNames } from "./absent-names.ts";
import type { BuildContext } from "./build-fault.ts";
import { buildHandler, type HandlerBuild } from "./build-handler.ts";
import { Imports } from "./imports.ts";
import type { Lookups } from "./lookups.ts";
import type { Output, SourceMap } from "./output.ts";
import { Resolver } from "./resolver.ts";

/** A function's code, or the reasons for refusing it. */
type Bundled =
  | { readonly type: "built"; readonly script: string; readonly sourceMap: string; readonly inputs: readonly string[] }
  | { readonly type: "refused"; readonly faults: readonly WatchfireError[] };

/**
 * Bundles a function's handler and everything it imports into one script for an isolate. Supports TypeScript, JavaScript, and npm
 * packages installed next to the functions. Code that an isolate could not run is refused, with file, line and column: an import
 * of a built-in module of Node, of a native addon, or of a name that is known only at run time; a name that exists in Node alone;
 * and a file outside of the request's roots.
 */
export async function bundleFunction(request: BuildRequest, lookups: Lookups): Promise<Bundled> {
  const functionBuild = new FunctionBuild(request, lookups);
  try {
    return await functionBuild.bundle();
  } catch (error) {
    if (!(error instanceof SourceFault)) throw error;
    return { type: "refused", faults: [functionBuild.faultOf(error)] };
  }
}

/** The builds of one function. Each file is read once, however many builds it takes. */
class FunctionBuild {
  private readonly request: BuildRequest;
  private readonly sources: Sources;
  private readonly resolver: Resolver;
  private readonly handler: string;

  constructor(request: BuildRequest, lookups: Lookups) {
    const { folder, realFolder, handler, roots } = request;
    this.request = request;
    this.sources = new Sources(roots);
    this.resolver = new Resolver(this.sources, lookups);
    this.handler = isBelow(folder, handler) ? join(realFolder, relative(folder, handler)) : handler;
  }

  async bundle(): Promise<Bundled> {
    // The first build marks the free uses of absent names. A second, unmarked build is needed only if a package uses such a name.
    let { output, faults } = await this.build(true);
    const uses = output && usesOfAbsentNames(output, this.show);
    const all = [...faults, ...(uses ? uses.faults : await this.furtherFaults())];
    if (all.length > 0) return refused(all);
    if (uses?.marked) ({ output, faults } = await this.build(false));
    if (faults.length > 0) return refused(faults);
    if (!output) throw new Error("esbuild failed and did not say why");
    return {
      type: "built",
      script: `${output.script}\n;undefined`,
      sourceMap: JSON.stringify(this.shownMap(output.map)),
      inputs: this.sources.files.map((file) => this.named(file)),
    };
  }

  faultOf({ code, message, path }: SourceFault): WatchfireError {
    return new WatchfireError(code, { what: message, place: { file: this.show(path ?? this.handler) } });
  }

  private build(marked: boolean, lenient = false): Promise<HandlerBuild> {
    const { sources, resolver, handler, show } = this;
    const imports = new Imports({ sources, resolver, handler, ownFolder: this.request.ownFolder, lenient });
    const subject: BuildContext = { imports, handler, show };
    return buildHandler({ subject, marked, lenient });
  }

  /** A build that failed has not checked the absent names, so another one continues without the failed imports to find them. */
  private async furtherFaults(): Promise<readonly WatchfireError[]> {
    const { output, faults } = await this.build(true, true);
    return output ? [...faults, ...usesOfAbsentNames(output, this.show).faults] : faults;
  }

  /** Returns a path below the functions folder as the request names it, which may be a link. */
  private named(file: string): string {
    const { folder, realFolder } = this.request;
    return isBelow(realFolder, file) ? join(folder, relative(realFolder, file)) : file;
  }

  private readonly show = (file: string): string => displayPath(this.named(file), this.request.workingFolder);

  /** The handler is listed among the sources even if nothing of it is left in the script. */
  private shownMap(map: Output["map"]): SourceMap {
    const sources = map.sources.map((source) => (isAbsolute(source) ? this.show(source) : source));
    const own = this.show(this.handler);
    if (sources.includes(own)) return { ...map, sources };
    return { ...map, sources: [...sources, own], sourcesContent: [...(map.sourcesContent ?? []), ""] };
  }
}

/** Removes duplicate faults and sorts the rest by file. */
function refused(faults: readonly WatchfireError[]): Bundled {
  const once = [...new Map(faults.map((fault) => [fault.message, fault])).values()];
  return { type: "refused", faults: once.sort(byPlace).slice(0, faultLimit) };
}

function byPlace({ detail: { place: a } }: WatchfireError, { detail: { place: b } }: WatchfireError): number {
  if (a?.file !== b?.file) return (a?.file ?? "") < (b?.file ?? "") ? -1 : 1;
  return (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);
}
