import { dirname, join, matchesGlob, relative, sep } from "node:path";
import type { Sources } from "../sources.ts";
import type { Lookups } from "./lookups.ts";

/** Result of an import: a file by its real path, a file left out on purpose (a package's `browser: false`), or no file. */
type Resolution =
  | { readonly type: "file"; readonly file: string }
  | { readonly type: "empty" }
  | { readonly type: "missing" };

/** The fields of a package.json that are read. */
interface PackageFacts {
  readonly isModule: boolean;
  /** Returns whether a file must be kept although nothing of it is used. */
  hasSideEffects(file: string): boolean;
}

/** Resolves imports as Node and bundlers do, and only within `Sources`. */
export class Resolver {
  private readonly sources: Sources;
  private readonly lookups: Lookups;
  private readonly packages = new Map<string, PackageFacts>();

  constructor(sources: Sources, lookups: Lookups) {
    this.sources = sources;
    this.lookups = lookups;
  }

  /**
   * @param folder folder of the importing file
   * @throws SourceFault if the file must not be read
   */
  resolve(specifier: string, folder: string, isRequire: boolean): Resolution {
    const found = this.lookups.find(this.sources, isRequire ? "require" : "import", folder, specifier);
    if (found === undefined) return { type: "missing" };
    if (found === false) return { type: "empty" };
    // The query is left to the bundler, and a file name may contain a question mark.
    return { type: "file", file: found.replaceAll("\0", "") };
  }

  /** Returns facts about the package that a file belongs to. */
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
      const { type, sideEffects } = JSON.parse(this.sources.open(file).contents.toString("utf8")) as PackageJson;
      return { isModule: type === "module", hasSideEffects: (of) => mayActAlone(relative(folder, of), sideEffects) };
    } catch {
      return undefined; // an unreadable package.json says nothing
    }
  }
}

interface PackageJson {
  readonly type?: unknown;
  readonly sideEffects?: unknown;
}

const noPackage: PackageFacts = { isModule: false, hasSideEffects: () => true };

/** Evaluates `sideEffects` as webpack defines it: `false`, or patterns of the files that have effects when they are loaded. */
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
