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
  /** Its content as plain data; undefined where the document has faults of syntax. */
  readonly value: unknown;
  readonly faults: readonly WatchfireError[];
  /** Where the value at a path stands; where there is none, its nearest parent. */
  place(path: Path): SourceLocation;
  /** Where the key itself stands: for a field that should not be there. */
  placeOfKey(path: Path): SourceLocation;
}

/**
 * Splits a file into its documents; empty ones are left out, but not all of them: a file that says nothing has a fault.
 * Faults of syntax belong to their document alone.
 * @param file the name that faults show
 */
export function readDocuments(text: string, file: string): ManifestDocument[] {
  const documents = parse(text, file, {}).filter(
    ({ value, faults }) => faults.length > 0 || (value !== null && value !== undefined),
  );
  if (documents.length > 0) return documents;
  return [unread({ file, line: 1, column: 1 }, "WF_MANIFEST_NOT_A_FUNCTION", "the file declares nothing")];
}

/** How another reader of YAML than this one takes a document. */
export interface Dialect {
  /** The tags that its scalars have. */
  readonly schema: SchemaOptions;
  /** Of a key that stands twice in a map the last value counts, and an unknown tag for nothing. */
  readonly lenient: boolean;
}

/**
 * The first document of a file, and nothing of what follows it; undefined where the file has none.
 * @param file the name that faults show
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
  const parsed = parseAllDocuments(text, { ...options, ...schema });
  return (Array.isArray(parsed) ? parsed : []).map((document) => new ParsedDocument(document, lines, file, lenient));
}

/** Stands for a file of which nothing can be read. */
function unread(place: SourceLocation, code: ErrorCode, what: string): ManifestDocument {
  const faults = [new WatchfireError(code, { what, place })];
  return { value: undefined, faults, place: () => place, placeOfKey: () => place };
}

/** Puts in the place of each BigInt a number, or what stands for its digits. Each node is visited once, whatever its aliases. */
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

  /** Of the value, or of the nearest parent that is there. */
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
