import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import type { ManifestDocument } from "../document/document.ts";
import { decodeUtf8 } from "../document/utf8.ts";
import { isBuilt } from "./built.ts";
import type { FunctionManifest } from "./function.ts";
import { type ReadManifest, readManifests } from "./read.ts";
import type { ExpressionChecker } from "./rule-fault.ts";
import type { ManifestValues } from "./values.ts";

/** Limit of a manifest file, in bytes. A manifest is a page of text. */
const fileLimit = 1024 * 1024;

/** Files read in one turn of the event loop: some 2 ms, at 0.4 ms each. Builders get their next build between turns. */
const filesInATurn = 4;

/** A function that cannot run because of its manifest. */
export interface RejectedFunction {
  /** The name in its manifest; `undefined` if it is missing or invalid. */
  readonly name: string | undefined;
  readonly file: string;
  readonly faults: readonly WatchfireError[];
}

/** Contents of a functions folder. */
export interface LoadedFunctions {
  /** Functions that can run, by name. */
  readonly functions: FunctionManifest[];
  /** Their documents by name, which locate the fields. */
  readonly documents: ReadonlyMap<string, ManifestDocument>;
  /** Functions that cannot run; each affects only itself. */
  readonly rejected: RejectedFunction[];
  /** Every fault, those of `rejected` included, in the order of files and lines. */
  readonly faults: WatchfireError[];
}

/** Dependencies of loading on other rooms. */
export interface LoadOptions {
  /** Compiles CEL expressions; without it they are not checked. */
  readonly checkExpression?: ExpressionChecker;
  /** The manifests' texts by file, if they have been read before; the folder is then not read. */
  readonly texts?: ReadonlyMap<string, string> | undefined;
  /** Fills the placeholders of the manifests' texts. Default: they are read as they are. */
  readonly values?: Pick<ManifestValues, "fill"> | undefined;
  /** Without `values`: the remedy that the hints of faults name for a value with `${`. Default: they name no remedy. */
  readonly placeholders?: PlaceholderRemedy | undefined;
  /**
   * Called with each manifest that is valid by itself, as soon as it has been read. The function is not loaded if another turns
   * out to claim its name.
   */
  readonly onManifest?: ((manifest: FunctionManifest) => void) | undefined;
  /** Returns the names in a folder. Default: reads the file system. */
  readonly readFolder?: FolderReader;
}

type FolderReader = (folder: string) => readonly string[];

/** Folders that belong to others: a package manager's, and a file system's own, which only root may read. */
const foreignFolders: ReadonlySet<string> = new Set(["node_modules", "lost+found"]);

/**
 * Reads every manifest of a functions folder: `<folder>/<name>/function.yaml` (or `.yml`), and `<folder>/*.yaml`, which may hold
 * several documents each. Ignores names with a leading dot, foreign folders, and folders without a manifest: handlers may share
 * code.
 */
export async function loadFunctions(folder: string, options: LoadOptions = {}): Promise<LoadedFunctions> {
  // Handlers are in other files in that case.
  const built = options.texts !== undefined || isBuilt(folder);
  const read: { file: string; result: ReadManifest }[] = [];
  const rejected: RejectedFunction[] = [];
  const folderFaults: WatchfireError[] = [];
  const files = options.texts
    ? [...options.texts].map(([file, text]) => ({ file, base: undefined, text }))
    : manifestFiles(folder, options.readFolder ?? readdirSync, folderFaults).map((found) => ({
        ...found,
        text: undefined,
      }));
  for (const [index, { file, base, text: asRead = readText(file, folder) }] of files.entries()) {
    if (index % filesInATurn === filesInATurn - 1) await nextTurn();
    const { text, faults } = filled(asRead, file, options.values);
    if (faults.length > 0) rejected.push({ name: undefined, file, faults });
    else
      for (const result of readManifests(text, file, built ? undefined : base, options.checkExpression)) {
        read.push({ file, result: hinted(result, options) });
        if (result.manifest) options.onManifest?.(result.manifest);
      }
  }
  const taken = Map.groupBy(read, ({ result }) => result.name);
  const functions: FunctionManifest[] = [];
  const documents = new Map<string, ManifestDocument>();
  for (const entry of read) {
    const { file, result } = entry;
    const same = result.name === undefined ? [] : (taken.get(result.name) ?? []).filter((other) => other !== entry);
    const faults = [...result.faults, ...(same[0] ? [duplicate(result, same[0].result)] : [])];
    if (result.manifest && faults.length === 0) {
      functions.push(result.manifest);
      documents.set(result.manifest.name, result.document);
    } else rejected.push({ name: result.name, file, faults });
  }
  functions.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { functions, documents, rejected, faults: [...folderFaults, ...rejected.flatMap(({ faults }) => faults)] };
}

/** Returns a manifest's text, or the faults that keep it from being read. */
function filled(text: string | WatchfireError, file: string, values: LoadOptions["values"]) {
  if (text instanceof WatchfireError) return { text: "", faults: [text] };
  return values?.fill(text, file) ?? { text, faults: [] };
}

/** Returns a manifest with the remedy in the hints of its faults, if it was read without values. */
function hinted(result: ReadManifest, { values, placeholders }: LoadOptions): ReadManifest {
  if (values || !placeholders || result.faults.length === 0) return result;
  return { ...result, faults: result.faults.map((fault) => withPlaceholderHint(fault, placeholders)) };
}

/** Which of the two is meant is unknown, and checkpoints are stored by name, so neither runs. */
function duplicate(result: ReadManifest, other: ReadManifest): WatchfireError {
  const { file, line } = other.document.place(["metadata", "name"]);
  return new WatchfireError("WF_MANIFEST_DUPLICATE_NAME", {
    what: `another function has this name at ${[file, line].filter((part) => part !== undefined).join(":")}`,
    place: result.document.place(["metadata", "name"]),
    path: "metadata.name",
    actual: result.name,
  });
}

function manifestFiles(folder: string, read: FolderReader, faults: WatchfireError[]): { file: string; base: string }[] {
  let names: readonly string[];
  try {
    names = read(folder);
  } catch (cause) {
    faults.push(
      new WatchfireError("WF_MANIFEST_FOLDER", { what: systemReason(cause), place: { file: folder }, cause }),
    );
    return [];
  }
  return names.toSorted().flatMap((name) => {
    const path = join(folder, name);
    if (name.startsWith(".") || foreignFolders.has(name)) return [];
    // Entries of a mounted ConfigMap are links, so the entry's own type is not used.
    if (!isFolder(path, faults)) {
      return /\.ya?ml$/.test(name) ? [{ file: path, base: resolve(folder) }] : [];
    }
    return namesIn(path, read, faults)
      .filter((inner) => /^function\.ya?ml$/.test(inner))
      .map((inner) => ({ file: join(path, inner), base: resolve(path) }));
  });
}

/** Whether a path is a folder. A circular link is a fault; a dangling one is ignored. */
function isFolder(path: string, faults: WatchfireError[]): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch (cause) {
    const what = `cannot be looked at: ${systemReason(cause)}`;
    faults.push(new WatchfireError("WF_MANIFEST_UNREADABLE", { what, place: { file: path }, cause }));
    return false;
  }
}

/**
 * Returns the names in a folder. An unreadable folder may hold a function, and a running one must not be stopped for that. Only a
 * missing folder counts as empty.
 */
function namesIn(folder: string, read: FolderReader, faults: WatchfireError[]): readonly string[] {
  try {
    return read(folder).toSorted();
  } catch (cause) {
    if (/^(?:ENOENT|ENOTDIR)$/.test(String((cause as NodeJS.ErrnoException).code))) return [];
    faults.push(
      new WatchfireError("WF_MANIFEST_UNREADABLE", {
        what: `the folder cannot be read: ${systemReason(cause)}`,
        place: { file: folder },
        hint: "let the user that runs this read it, or move it away",
        cause,
      }),
    );
    return [];
  }
}

function readText(file: string, folder: string): string | WatchfireError {
  const unreadable = (what: string, actual: unknown, cause?: unknown) =>
    new WatchfireError("WF_MANIFEST_UNREADABLE", { what, place: { file }, actual, cause });
  try {
    const stats = statSync(file);
    // An error message quotes the beginning of a file that is not a manifest, so the file must not be a token or a kubeconfig.
    if (relative(realpathSync(folder), realpathSync(file)).split(sep)[0] === "..") {
      return unreadable("it leads outside of the functions folder", undefined);
    }
    // Reading a pipe may never end.
    if (!stats.isFile() && !stats.isDirectory()) return unreadable("it is not a regular file", undefined);
    const { size } = stats;
    if (size > fileLimit) return unreadable("the file is too large", `${size} bytes`);
    return decodeUtf8(readFileSync(file), file, "WF_MANIFEST_UNREADABLE");
  } catch (cause) {
    if (cause instanceof WatchfireError) return cause;
    return unreadable("the file cannot be read", (cause as NodeJS.ErrnoException).code, cause);
  }
}

/** How a user fills placeholders: by the command's own `--values`, or, if it has no such option, by building the folder. */
type PlaceholderRemedy = "option" | "build";

const remedies: Readonly<Record<PlaceholderRemedy, string>> = {
  option: "if it is a placeholder, name its values with --values FILE",
  build: "if it is a placeholder, `watchfire build --values FILE` fills it",
};

/**
 * Returns the fault of a manifest that was read without values. If its actual value contains `${`, the hint ends with the remedy.
 * Other faults are returned as they are.
 */
function withPlaceholderHint(fault: WatchfireError, remedy: PlaceholderRemedy): WatchfireError {
  const { actual } = fault.detail;
  if (typeof actual !== "string" || !actual.includes("${")) return fault;
  return new WatchfireError(fault.code, { ...fault.detail, hint: `${fault.hint}; ${remedies[remedy]}` });
}
