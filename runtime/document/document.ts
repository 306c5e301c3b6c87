import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isSeq,
  LineCounter,
  type Node,
  type ParseOptions,
  parseAllDocuments,
  type SchemaOptions,
  visit,
} from "yaml";
import { type ErrorCode, type SourceLocation, WatchfireError } from "../base/errors.ts";
import { exactInteger } from "../base/exact-json.ts";
import { documentFaults } from "./document-fault.ts";
import { tooDeep } from "./nesting.ts";
import { keyOf, type Path } from "./path.ts";

/** One YAML document of a file. */
export interface ManifestDocument {
  /** Its content as plain data; `undefined` if the document has syntax errors. */
  readonly value: unknown;
  readonly faults: readonly WatchfireError[];
  /** Returns the place of the value at a path, or of its nearest existing parent. */
  place(path: Path): SourceLocation;
  /** Returns the place of the key itself, for a field that should not be there. */
  placeOfKey(path: Path): SourceLocation;
}

/**
 * Splits a file into its documents. Empty documents are omitted, unless all are empty, which is a fault. A syntax error affects
 * only its own document.
 * @param file the name shown in faults
 */
export function readDocuments(text: string, file: string): ManifestDocument[] {
  const documents = parse(text, file, {}).filter(
    ({ value, faults }) => faults.length > 0 || (value !== null && value !== undefined),
  );
  if (documents.length > 0) return documents;
  return [unread({ file, line: 1, column: 1 }, "WF_MANIFEST_NOT_A_FUNCTION", "the file declares nothing")];
}

/** How another YAML reader interprets a document. */
export interface Dialect {
  /** Tags that scalars are resolved to. */
  readonly schema: SchemaOptions;
  /** Accepts duplicate keys, of which the last value counts, and ignores unknown tags. */
  readonly lenient: boolean;
}

/**
 * Reads the first document of a file and ignores the rest; `undefined` if the file has no document.
 * @param file the name shown in faults
 */
export const readFirstDocument = (text: string, file: string, dialect: Dialect): ManifestDocument | undefined =>
  parse(text, file, dialect)[0];

function parse(text: string, file: string, { schema, lenient = false }: Partial<Dialect>): ManifestDocument[] {
  const deep = tooDeep(text);
  if (deep) return [unread({ file, ...deep }, "WF_MANIFEST_SYNTAX", "nested deeper than any manifest")];
  const lines = new LineCounter();
  const options: ParseOptions = {
    lineCounter: lines,
    prettyErrors: false,
    strict: true,
    uniqueKeys: false,
    stringKeys: true,
    intAsBigInt: true,
  };
  const parsed = parseAllDocuments(text, { ...options, merge: true, ...schema });
  return (Array.isArray(parsed) ? parsed : []).map((document) => new ParsedDocument(document, lines, file, lenient));
}

/** Stands for a file that cannot be read at all. */
function unread(place: SourceLocation, code: ErrorCode, what: string): ManifestDocument {
  const faults = [new WatchfireError(code, { what, place })];
  return { value: undefined, faults, place: () => place, placeOfKey: () => place };
}

/**
 * Replaces each BigInt by a number, or by a value that keeps its digits if a number cannot hold it. Each node is visited once,
 * even if aliases refer to it.
 */
const withNumbers = (document: Document.Parsed): void =>
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === "bigint") node.value = exactInteger(node.value);
    },
  });

class ParsedDocument implements ManifestDocument {
  readonly value: unknown;
  readonly faults: readonly WatchfireError[];
  private readonly document: Document.Parsed;
  private readonly lines: LineCounter;
  private readonly file: string;

  constructor(document: Document.Parsed, lines: LineCounter, file: string, lenient: boolean) {
    this.document = document;
    this.lines = lines;
    this.file = file;
    withNumbers(document);
    const faults = documentFaults(document, (offset) => this.at(offset), lenient);
    if (faults.length === 0) this.value = document.toJS({ maxAliasCount: -1 });
    this.faults = faults;
  }

  place(path: Path): SourceLocation {
    return this.at(this.offset(path));
  }

  placeOfKey(path: Path): SourceLocation {
    const parent = this.nodeAt(path.slice(0, -1));
    const pair = isMap(parent) ? parent.items.find((item) => keyOf(item.key) === String(path.at(-1))) : undefined;
    return this.at(isNode(pair?.key) ? pair.key.range?.[0] : this.offset(path));
  }

  /** Returns the offset of the value, or of its nearest existing parent. */
  private offset(path: Path): number | undefined {
    for (let length = path.length; length > 0; length--) {
      const node = this.nodeAt(path.slice(0, length));
      if (node?.range) return node.range[0];
    }
    return this.document.contents?.range?.[0];
  }

  private nodeAt(path: Path): Node | undefined {
    let node: Node | undefined = this.resolve(this.document.contents);
    for (const step of path) {
      let next: unknown;
      if (isSeq(node)) next = node.items[Number(step)];
      else if (isMap(node)) next = node.items.find((item) => keyOf(item.key) === String(step))?.value;
      node = this.resolve(isPair(next) ? next.value : next);
      if (!node) return undefined;
    }
    return node;
  }

  private resolve(node: unknown): Node | undefined {
    if (isAlias(node)) return node.resolve(this.document);
    return isNode(node) ? node : undefined;
  }

  private at(offset: number | undefined): SourceLocation {
    const { line, col } = this.lines.linePos(offset ?? 0);
    return { file: this.file, line, column: col };
  }
}
