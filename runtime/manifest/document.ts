import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
} from "yaml";
import { type Place, WatchfireError } from "../errors.ts";

/** A path into a document: keys and indices. */
export type Path = readonly PropertyKey[];

/** One YAML document of a file. */
export interface ManifestDocument {
  /** Its content as plain data; undefined where the document has faults of syntax. */
  readonly value: unknown;
  readonly faults: readonly WatchfireError[];
  /** Where the value at a path stands; where there is none, its nearest parent. */
  place(path: Path): Place;
  /** Where the key itself stands: for a field that should not be there. */
  placeOfKey(path: Path): Place;
}

/**
 * Splits a file into its documents; empty ones are left out. Faults of syntax belong to their document alone.
 * @param file the name that faults show
 */
export function readDocuments(text: string, file: string): ManifestDocument[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, strict: true });
  if (!Array.isArray(documents)) return [];
  return documents
    .map((document) => new ParsedDocument(document, lines, file))
    .filter(({ value, faults }) => faults.length > 0 || (value !== null && value !== undefined));
}

class ParsedDocument implements ManifestDocument {
  readonly value: unknown;
  readonly faults: readonly WatchfireError[];
  private readonly document: Document.Parsed;
  private readonly lines: LineCounter;
  private readonly file: string;

  constructor(document: Document.Parsed, lines: LineCounter, file: string) {
    this.document = document;
    this.lines = lines;
    this.file = file;
    const faults = [...document.errors, ...document.warnings].map(
      (fault) =>
        new WatchfireError(fault.code === "DUPLICATE_KEY" ? "WF_MANIFEST_DUPLICATE_KEY" : "WF_MANIFEST_SYNTAX", {
          what: lowerFirst(fault.message),
          place: this.at(fault.pos[0]),
        }),
    );
    if (faults.length === 0) {
      try {
        this.value = document.toJS();
      } catch (error) {
        // Aliases that would unfold without end.
        const what = error instanceof Error ? lowerFirst(error.message) : "cannot be read";
        faults.push(new WatchfireError("WF_MANIFEST_SYNTAX", { what, place: { file } }));
      }
    }
    this.faults = faults;
  }

  place(path: Path): Place {
    return this.at(this.offset(path));
  }

  placeOfKey(path: Path): Place {
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

  private at(offset: number | undefined): Place {
    if (offset === undefined) return { file: this.file };
    const { line, col } = this.lines.linePos(offset);
    return { file: this.file, line, column: col };
  }
}

const keyOf = (key: unknown): string => String(isScalar(key) ? key.value : key);

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1).replace(/\.$/, "");
