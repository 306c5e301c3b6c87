import { lstatSync, readlinkSync } from "node:fs";
import { dirname, join, matchesGlob, relative, sep } from "node:path";
import enhancedResolve, { type FileSystem, type Resolver as Lookup } from "enhanced-resolve";
import { SourceFault } from "../source-fault.ts";
import type { Sources } from "../sources.ts";

/** What an import leads to: a file by its real path, nothing on purpose (a package's `browser: false`), or no file. */
export type Resolution =
  | { readonly type: "file"; readonly file: string }
  | { readonly type: "empty" }
  | { readonly type: "missing" };

/** What is read of a package.json. */
export interface PackageFacts {
  readonly isModule: boolean;
  /** Whether leaving a file out, where nothing of it is used, changes nothing. */
  hasSideEffects(file: string): boolean;
}

/** As esbuild would for a browser with the condition `worker`. */
const common = {
  extensions: [".tsx", ".ts", ".jsx", ".js", ".json"],
  extensionAlias: {
    ".js": [".js", ".ts", ".tsx"],
    ".jsx": [".jsx", ".ts", ".tsx"],
    ".mjs": [".mjs", ".mts"],
    ".cjs": [".cjs", ".cts"],
  },
  aliasFields: ["browser"],
  useSyncFileSystemCalls: true,
};

/** Finds the files that imports name, as Node and bundlers do, and looks nowhere but where `Sources` lets it. */
export class Resolver {
  private readonly sources: Sources;
  private readonly imports: Lookup;
  private readonly requires: Lookup;
  private readonly packages = new Map<string, PackageFacts>();
  /** Why something on the way could not be looked at. */
  private fault: SourceFault | undefined;

  constructor(sources: Sources) {
    this.sources = sources;
    const fileSystem = this.fileSystem();
    this.imports = enhancedResolve.ResolverFactory.createResolver({
      ...common,
      fileSystem,
      conditionNames: ["browser", "worker", "import"],
      mainFields: ["browser", "module", "main"],
    });
    this.requires = enhancedResolve.ResolverFactory.createResolver({
      ...common,
      fileSystem,
      conditionNames: ["browser", "worker", "require"],
      mainFields: ["browser", "main", "module"],
    });
  }

  /**
   * @param folder the importing file's
   * @throws SourceFault where what it leads to may not be read
   */
  resolve(specifier: string, folder: string, isRequire: boolean): Resolution {
    this.fault = undefined;
    let found: string | false;
    try {
      found = (isRequire ? this.requires : this.imports).resolveSync({}, folder, specifier);
    } catch {
      if (this.fault) throw this.fault;
      return { type: "missing" };
    }
    if (found === false) return { type: "empty" };
    // A query is the bundler's own business, and a name may hold a question mark.
    return { type: "file", file: found.replaceAll("\0", "") };
  }

  /** Of the package that a file belongs to. */
  packageOf(file: string): PackageFacts {
    const folder = dirname(file);
    const known = this.packages.get(folder);
    if (known) return known;
    const facts = this.readPackage(folder) ?? (this.isTop(folder) ? noPackage : this.packageOf(folder));
    this.packages.set(folder, facts);
    return facts;
  }

  private isTop(folder: string): boolean {
    const above = dirname(folder);
    return above === folder || this.sources.rootOf(above) === undefined;
  }

  private readPackage(folder: string): PackageFacts | undefined {
    const file = join(folder, "package.json");
    try {
      if (!this.sources.stat(file)?.isFile()) return undefined;
      const { type, sideEffects } = JSON.parse(this.sources.open(file).contents.toString("utf8")) as Facts;
      return { isModule: type === "module", hasSideEffects: (of) => mayActAlone(relative(folder, of), sideEffects) };
    } catch {
      return undefined; // what cannot be read says nothing
    }
  }

  /** What of a file system looking up takes; answered from within the roots alone. */
  private fileSystem(): FileSystem {
    const answer = <T>(look: () => T | undefined): T => {
      try {
        const found = look();
        if (found !== undefined) return found;
      } catch (error) {
        if (error instanceof SourceFault) this.fault ??= error;
      }
      throw Object.assign(new Error("there is nothing"), { code: "ENOENT" });
    };
    const inside = (path: string) => this.sources.rootOf(path) !== undefined;
    const system = {
      statSync: (path: string) => answer(() => this.sources.stat(path)),
      lstatSync: (path: string) => answer(() => (inside(path) ? lstatSync(path) : undefined)),
      readFileSync: (path: string) =>
        answer(() => (this.sources.stat(path)?.isFile() ? this.sources.open(path).contents : undefined)),
      readlinkSync: (path: string) => answer(() => (inside(path) ? readlinkSync(path) : undefined)),
      readdirSync: () => answer(() => undefined),
    };
    return system as unknown as FileSystem;
  }
}

interface Facts {
  readonly type?: unknown;
  readonly sideEffects?: unknown;
}

const noPackage: PackageFacts = { isModule: false, hasSideEffects: () => true };

/** The field's meaning is webpack's: `false`, or patterns of the files that do something when they are loaded. */
function mayActAlone(file: string, field: unknown): boolean {
  if (typeof field === "boolean") return field;
  if (!Array.isArray(field)) return true;
  const path = file.split(sep).join("/");
  return field.some((each) => {
    if (typeof each !== "string") return true;
    const pattern = each.replace(/^\.\//, "");
    return matchesGlob(path, pattern.includes("/") ? pattern : `**/${pattern}`);
  });
}
