import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  type Node,
  visit,
  type YAMLError,
} from "yaml";
import { type SourceLocation, WatchfireError } from "../base/errors.ts";
import { lowerFirst } from "../base/wording.ts";
import { keyOf, type Path, showPath } from "./path.ts";

/** Limit on the nodes that aliases expand to; a manifest of hundreds of triggers has fewer. */
const mostNodes = 10_000;

/** Returns the place of an offset in the file. */
type Locate = (offset: number | undefined) => SourceLocation;

/**
 * Finds faults of a document before its fields are examined, in the order of the file.
 * @param lenient accepts duplicate keys and unknown tags
 */
export function documentFaults(document: Document.Parsed, locate: Locate, lenient: boolean): readonly WatchfireError[] {
  const syntax = syntaxFault(document, lenient ? document.errors : [...document.errors, ...document.warnings], locate);
  if (syntax) return [syntax];
  const structure = new Structure(locate, lenient);
  structure.measure(document.contents, []);
  return structure.faults;
}

/** Returns one fault per document: after the first, most errors are its consequences. */
function syntaxFault(
  document: Document.Parsed,
  errors: readonly YAMLError[],
  locate: Locate,
): WatchfireError | undefined {
  const [first] = errors;
  if (!first) return undefined;
  const fault = (at: number | undefined, what: string, hint?: string): WatchfireError =>
    new WatchfireError("WF_MANIFEST_SYNTAX", { what, place: locate(at), ...(hint !== undefined && { hint }) });
  // For a missing closing quote, the parser reports the end of the text, and before it errors caused by the opening quote.
  if (errors.some(({ message }) => /^Missing closing ['"]quote/.test(message))) {
    return fault(lastQuote(document), "this quote is not closed", "close it");
  }
  if (first.code === "TAB_AS_INDENT") {
    return fault(first.pos[0], "YAML does not take tabs as indentation", "indent with spaces");
  }
  if (first.code === "NON_STRING_KEY") return fault(first.pos[0], "a list or a map cannot be the name of a field");
  return fault(first.pos[0], `not valid YAML: ${lowerFirst(first.message)}`);
}

/** In quotes `<<` is a name like any other. */
const isMergeKey = (key: unknown): boolean => isScalar(key) && key.type === "PLAIN" && keyOf(key) === "<<";

function lastQuote(document: Document.Parsed): number | undefined {
  let at: number | undefined;
  visit(document, {
    Scalar(_key, node) {
      if (node.type === "QUOTE_SINGLE" || node.type === "QUOTE_DOUBLE") at = node.range?.[0];
    },
  });
  return at;
}

/** Finds duplicate keys, and aliases that refer to nothing, to themselves, or to too much. */
class Structure {
  readonly faults: WatchfireError[] = [];
  private readonly locate: Locate;
  /** The newest anchor seen so far, by name. */
  private readonly anchors = new Map<string, Node>();
  private readonly sizes = new Map<Node, number>();
  private readonly open = new Set<Node>();
  private readonly lenient: boolean;
  private unfolded = 0;

  constructor(locate: Locate, lenient: boolean) {
    this.locate = locate;
    this.lenient = lenient;
  }

  /** Returns the number of nodes that a node expands to, aliases included. */
  measure(node: unknown, path: Path): number {
    if (isPair(node)) {
      const at = [...path, keyOf(node.key)];
      const size = this.measure(node.key, path) + this.measure(node.value, at);
      if (isMergeKey(node.key)) this.mergeSource(node.value, at);
      return size;
    }
    if (!isNode(node)) return 0;
    if (isAlias(node)) return this.alias(node.source, node, path);
    if (node.anchor) this.anchors.set(node.anchor, node);
    let size = 1;
    if (isCollection(node)) {
      this.open.add(node);
      if (isMap(node) && !this.lenient) this.repeatedKeys(node.items, path);
      for (const [index, item] of node.items.entries())
        size += this.measure(item, isSeq(node) ? [...path, index] : path);
      this.open.delete(node);
    }
    this.sizes.set(node, size);
    return size;
  }

  /** Only maps can be merged. An alias that refers to nothing has a fault already. */
  private mergeSource(node: unknown, path: Path): void {
    const source = this.target(node);
    for (const each of isSeq(source) ? source.items : [source]) {
      const one = this.target(each);
      if (one === undefined || isMap(one)) continue;
      this.fault(
        isNode(each) ? each : one,
        path,
        "`<<` merges only maps",
        "name a map, such as *base, or a list of maps",
      );
    }
  }

  private target(node: unknown): Node | undefined {
    if (isAlias(node)) return this.anchors.get(node.source);
    return isNode(node) ? node : undefined;
  }

  private alias(name: string, node: Node, path: Path): number {
    const target = this.anchors.get(name);
    const size = target === undefined ? 0 : (this.sizes.get(target) ?? 0);
    const before = this.unfolded;
    this.unfolded += size;
    if (target === undefined) {
      this.fault(node, path, `the alias *${name} refers to nothing`, `put \`&${name}\` before it, or write the value`);
    } else if (this.open.has(target)) {
      this.fault(node, path, `the alias *${name} refers to a value that contains it`, "write the value");
    } else if (this.unfolded > mostNodes && before <= mostNodes) {
      this.fault(node, path, `the document's aliases unfold to more than ${mostNodes} values`, "write fewer of them");
    }
    return size;
  }

  private fault(node: Node, path: Path, what: string, hint: string): void {
    const place = this.locate(node.range?.[0]);
    this.faults.push(new WatchfireError("WF_MANIFEST_SYNTAX", { what, place, path: showPath(path), hint }));
  }

  private repeatedKeys(pairs: readonly { readonly key: unknown }[], path: Path): void {
    const first = new Map<string, SourceLocation>();
    for (const { key } of pairs) {
      const name = keyOf(key);
      const place = this.locate(isNode(key) ? key.range?.[0] : undefined);
      const earlier = first.get(name);
      if (!earlier) first.set(name, place);
      else {
        this.faults.push(
          new WatchfireError("WF_MANIFEST_DUPLICATE_KEY", {
            what: `the field ${JSON.stringify(name)} is given a second time; the first is at ${earlier.line}:${earlier.column}`,
            place,
            path: showPath([...path, name]),
          }),
        );
      }
    }
  }
}
