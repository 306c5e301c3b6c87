import { isBuiltin } from "node:module";
import { dirname, extname, isAbsolute, resolve } from "node:path";
import type { Loader, OnLoadArgs, OnLoadResult, OnResolveArgs, OnResolveResult, PartialMessage, Plugin } from "esbuild";
import { packageHint, packageOf } from "../../types/package-hint.ts";
import { type BuildFault, SourceFault } from "../source-fault.ts";
import { entrySource } from "../source-path.ts";
import { outside, type Sources } from "../sources.ts";
import type { Resolver } from "./resolver.ts";

/** Replacements for built-in modules that handlers often import. */
const substitutes: Readonly<Record<string, string>> = {
  fs: "a handler has no file system; keep state in the cluster, and put settings in `env`",
  "fs/promises": "a handler has no file system; keep state in the cluster, and put settings in `env`",
  http: "use `ctx.fetch`, and name the host under `egress` in the manifest",
  https: "use `ctx.fetch`, and name the host under `egress` in the manifest",
  net: "use `ctx.fetch`, and name the host under `egress` in the manifest",
  crypto: "use the global `crypto`",
  buffer: "use Uint8Array, TextEncoder and TextDecoder",
  url: "use the global `URL`",
  process: "use `ctx.env` for settings",
  child_process: "a handler cannot start processes",
  timers: "use the global setTimeout",
  "timers/promises": "wrap the global setTimeout in a promise",
  util: "use the language's own means, such as structuredClone",
};

const loaders: Readonly<Record<string, Loader>> = {
  ".ts": "ts",
  ".mts": "ts",
  ".cts": "ts",
  ".tsx": "tsx",
  ".js": "js",
  ".mjs": "js",
  ".cjs": "js",
  ".jsx": "jsx",
  ".json": "json",
  ".txt": "text",
};

/** `with { type: … }` of an import. */
const attributeLoaders: Readonly<Record<string, Loader>> = { json: "json", text: "text", bytes: "binary" };

/** Returns an own entry of a table: a handler chooses the key, and may write `constructor`. */
const entryOf = <T>(table: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined;

/** esbuild knows files by names in this namespace, without a path or folder that it could look into. */
const sourceNamespace = "functions";

/**
 * Namespace of empty modules: imports that failed in a lenient build, and files that a package leaves out. They are CommonJS,
 * from which any name can be imported.
 */
const emptyNamespace = "watchfire-empty";

/** Suffix that makes esbuild treat an importing file as one of Node's ECMAScript modules, as its package.json declares. */
const moduleMark = ".mts";

interface ImportsOptions {
  readonly sources: Sources;
  readonly resolver: Resolver;
  /** Path of the handler. */
  readonly handler: string;
  /** Folder where the runtime's own packages are found: @watchfire/sdk, if it is not installed next to the functions. */
  readonly ownFolder: string;
  /** Replaces failed imports by empty modules, so that a build that has failed finds further faults. */
  readonly lenient: boolean;
}

/** Files of a build, under the names by which esbuild, its messages and its maps know them. */
export class Imports {
  private readonly options: ImportsOptions;
  private readonly files = new Map<string, string>();
  private handlerName: string | undefined;

  constructor(options: ImportsOptions) {
    this.options = options;
  }

  /**
   * Returns the real path behind a name, as `functions:hello/handler.ts`; `undefined` for a name that is not a file of this
   * build.
   */
  fileOf(name: string): string | undefined {
    const prefix = `${sourceNamespace}:`;
    return name.startsWith(prefix) ? this.files.get(name.slice(prefix.length)) : undefined;
  }

  /** Name of the handler, once it has been resolved. */
  get entry(): string | undefined {
    return this.handlerName && `${sourceNamespace}:${this.handlerName}`;
  }

  /** Whether a name stands for an empty module. */
  isEmpty(name: string): boolean {
    return name.startsWith(`${emptyNamespace}:`);
  }

  /** Replaces the names in an esbuild text by paths as shown to users. */
  withNames(text: string, show: (file: string) => string): string {
    return text.replace(/functions:[^"\n]+/g, (name) => {
      const file = this.fileOf(name);
      return file === undefined ? name : show(file);
    });
  }

  /** Resolves an import. */
  resolve(args: OnResolveArgs): OnResolveResult {
    const fault = this.tryResolve(args);
    if (!("text" in fault)) return fault;
    // The handler itself must not be left out.
    if (this.options.lenient && args.importer !== "" && args.namespace === sourceNamespace) {
      return { path: args.path, namespace: emptyNamespace };
    }
    return { errors: [fault] };
  }

  private tryResolve({ path, importer, namespace, kind }: OnResolveArgs): OnResolveResult | PartialMessage {
    const { resolver, sources, handler, ownFolder } = this.options;
    if (importer === entrySource) return this.resolveHandler(handler);
    const from = namespace === sourceNamespace ? this.files.get(importer) : undefined;
    if (from === undefined) return unresolved(path, "cannot be imported from here");
    if (path.endsWith(".node")) return nativeFault(path);
    if (path.startsWith("node:")) return builtinFault(path);
    if (/^[a-z][a-z0-9+.-]+:/i.test(path)) return unresolved(path, "is neither a file nor a package");
    const folder = dirname(from);
    const isPath = isAbsolute(path) || /^\.\.?(?:\/|$)/.test(path);
    try {
      if (isPath && !sources.rootOf(resolve(folder, path))) throw outside(path);
      const isRequire = kind === "require-call" || kind === "require-resolve";
      let found = resolver.resolve(path, folder, isRequire);
      if (found.type === "missing" && /^@watchfire\/sdk(?:$|\/)/.test(path)) {
        found = resolver.resolve(path, ownFolder, isRequire);
      }
      if (found.type === "empty") return { path, namespace: emptyNamespace };
      if (found.type === "file") return this.admit(found.file);
      if (isBuiltin(path)) return builtinFault(path);
      return unresolved(path, "cannot be found", hintOf(path));
    } catch (error) {
      if (error instanceof SourceFault) return faultOf(error, path);
      throw error;
    }
  }

  private resolveHandler(handler: string): OnResolveResult | PartialMessage {
    const { resolver, sources } = this.options;
    try {
      if (!sources.rootOf(handler)) throw outside(handler);
      const found = resolver.resolve(handler, dirname(handler), false);
      if (found.type !== "file") return unresolved("the handler", "cannot be read");
      const admitted = this.admit(found.file);
      this.handlerName = admitted.path;
      return admitted;
    } catch (error) {
      if (error instanceof SourceFault) return handlerFault(error);
      throw error;
    }
  }

  private admit(file: string): OnResolveResult & { readonly path: string } {
    const { sources, resolver } = this.options;
    sources.admit(file);
    const { isModule, hasSideEffects } = resolver.packageOf(file);
    const mark = isModule && /^\.[jt]sx?$/.test(extname(file)) ? moduleMark : "";
    const name = sources.nameOf(file) + mark;
    this.files.set(name, file);
    return { path: name, namespace: sourceNamespace, sideEffects: hasSideEffects(file) };
  }

  /** Loads a file. */
  load({ path: name, with: attributes }: OnLoadArgs): OnLoadResult {
    const path = this.files.get(name) ?? "";
    const { type } = attributes;
    const loader = type === undefined ? entryOf(loaders, extname(path)) : entryOf(attributeLoaders, type);
    if (!loader) {
      const what = type === undefined ? `a "${extname(path)}" file` : `a file with the attribute type "${type}"`;
      const hint = "import TypeScript, JavaScript, JSON or .txt, and put other data into one of them";
      return { errors: [fault(`${what} cannot be imported`, { code: "WF_BUNDLE_UNRESOLVED", hint })] };
    }
    try {
      const { contents } = this.options.sources.open(path);
      return { contents: isCode(loader) ? withoutMapComments(contents) : contents, loader };
    } catch (error) {
      if (!(error instanceof SourceFault)) throw error;
      const isHandler = name === this.handlerName;
      return { errors: [isHandler ? handlerFault(error) : faultOf(error, this.options.sources.nameOf(path))] };
    }
  }
}

/** Resolves every import and loads every file of the current build, so that esbuild neither searches for files nor opens them. */
export const importsOf = (current: () => Imports): Plugin => ({
  name: "watchfire",
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /.*/ }, (args) => current().resolve(args));
    onLoad({ filter: /.*/, namespace: sourceNamespace }, (args) => current().load(args));
    onLoad({ filter: /.*/, namespace: emptyNamespace }, () => ({ contents: "module.exports = {};" }));
    onLoad({ filter: /.*/ }, () => ({ errors: [unresolved("it", "no such file can be imported")] }));
  },
});

const isCode = (loader: Loader): boolean => /^[jt]sx?$/.test(loader);

/**
 * Hides the comments that name a source map: esbuild would open the map and its sources itself. The escape has the same meaning
 * in strings, names and expressions.
 */
function withoutMapComments(contents: Buffer): Buffer | string {
  if (!contents.includes("sourceMappingURL")) return contents;
  return contents.toString("utf8").replace(/(?<!\\)sourceMappingURL/g, "\\u0073ourceMappingURL");
}

function builtinFault(specifier: string): PartialMessage {
  const hint = entryOf(substitutes, specifier.replace(/^node:/, ""));
  return fault(`"${specifier}" is part of Node, and a handler runs without it`, {
    code: "WF_BUNDLE_NODE_BUILTIN",
    ...(hint === undefined ? {} : { hint }),
  });
}

const nativeFault = (specifier: string): PartialMessage =>
  fault(`"${specifier}" is native code, which an isolate cannot load`, { code: "WF_BUNDLE_NATIVE_ADDON" });

const unresolved = (specifier: string, what: string, hint?: string): PartialMessage =>
  fault(`"${specifier}" ${what}`, { code: "WF_BUNDLE_UNRESOLVED", ...(hint !== undefined && { hint }) });

/** Returns `undefined` for the hint of the code, which is about paths. */
function hintOf(specifier: string): string | undefined {
  const name = packageOf(specifier);
  return name === undefined ? undefined : packageHint(name);
}

const faultOf = ({ code, message }: SourceFault, specifier: string): PartialMessage =>
  fault(`"${specifier}" cannot be imported: ${message}`, { code });

const handlerFault = ({ code, message }: SourceFault): PartialMessage =>
  fault(`the handler cannot be built: ${message}`, { code });

const fault = (text: string, detail: BuildFault): PartialMessage => ({ text, detail });
