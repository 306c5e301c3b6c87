import { encodeJson, parseJson } from "../../exact-json.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";

/**
 * One step of a field's path, as managedFields writes it. `f:name` is a field, `k:{"name":"a"}` an item of a list that is a map,
 * `v:"a"` an item of a set, `i:0` an index.
 */
export type PathElement = string;

/** An immutable set of field paths, stored as a trie. */
export class FieldSet {
  static readonly empty = new FieldSet(new Set(), new Map());
  /** Elements that are themselves in the set. */
  readonly members: ReadonlySet<PathElement>;
  /** Members below each element. */
  readonly children: ReadonlyMap<PathElement, FieldSet>;

  constructor(members: ReadonlySet<PathElement>, children: ReadonlyMap<PathElement, FieldSet>) {
    this.members = members;
    this.children = children;
  }

  /** Parses a `fieldsV1`. */
  static parse(fields: JsonObject): FieldSet {
    const builder = new FieldSetBuilder();
    const read = (node: JsonObject, path: PathElement[]): void => {
      const names = Object.keys(node);
      if (path.length > 0 && (names.length === 0 || "." in node)) builder.insert(path);
      for (const name of names) {
        const child = node[name];
        if (name !== "." && isObject(child)) read(child, [...path, normalize(name)]);
      }
    };
    read(fields, []);
    return builder.build();
  }

  /** Formats the set as a `fieldsV1`. */
  format(): JsonObject {
    const written: JsonObject = {};
    for (const element of [...new Set([...this.members, ...this.children.keys()])].sort()) {
      const below = this.children.get(element)?.format() ?? {};
      const both = this.members.has(element) && this.children.has(element);
      written[element] = both ? { ".": {}, ...below } : below;
    }
    return written;
  }

  get isEmpty(): boolean {
    return this.members.size === 0 && this.children.size === 0;
  }

  has(path: readonly PathElement[]): boolean {
    const [first, ...rest] = path;
    if (first === undefined) return false;
    return rest.length === 0 ? this.members.has(first) : (this.children.get(first)?.has(rest) ?? false);
  }

  below(element: PathElement): FieldSet {
    return this.children.get(element) ?? FieldSet.empty;
  }

  union(other: FieldSet): FieldSet {
    if (other.isEmpty) return this;
    if (this.isEmpty) return other;
    const children = new Map(this.children);
    for (const [element, child] of other.children) children.set(element, this.below(element).union(child));
    return new FieldSet(this.members.union(other.members), children);
  }

  intersection(other: FieldSet): FieldSet {
    const children = new Map<PathElement, FieldSet>();
    for (const [element, child] of this.children) keep(children, element, child.intersection(other.below(element)));
    return new FieldSet(this.members.intersection(other.members), children);
  }

  difference(other: FieldSet): FieldSet {
    const children = new Map<PathElement, FieldSet>();
    for (const [element, child] of this.children) keep(children, element, child.difference(other.below(element)));
    return new FieldSet(this.members.difference(other.members), children);
  }

  /** Returns the set without those paths and everything below them. */
  without(paths: readonly (readonly PathElement[])[]): FieldSet {
    const heads = new Set(paths.filter((path) => path.length === 1).map((path) => path[0] ?? ""));
    const children = new Map<PathElement, FieldSet>();
    for (const [element, child] of this.children) {
      const deeper = paths.filter((path) => path.length > 1 && path[0] === element).map((path) => path.slice(1));
      if (!heads.has(element)) keep(children, element, deeper.length > 0 ? child.without(deeper) : child);
    }
    return new FieldSet(this.members.difference(heads), children);
  }

  equals(other: FieldSet): boolean {
    return (
      this.members.size === other.members.size &&
      this.children.size === other.children.size &&
      [...this.members].every((element) => other.members.has(element)) &&
      [...this.children].every(([element, child]) => child.equals(other.below(element)))
    );
  }

  /** Yields every path of the set, in order. */
  *paths(prefix: readonly PathElement[] = []): Generator<PathElement[]> {
    for (const element of [...this.members].sort()) yield [...prefix, element];
    for (const element of [...this.children.keys()].sort()) yield* this.below(element).paths([...prefix, element]);
  }
}

/** Collects paths into a FieldSet. */
export class FieldSetBuilder {
  readonly #members = new Set<PathElement>();
  readonly #children = new Map<PathElement, FieldSetBuilder>();

  insert(path: readonly PathElement[]): void {
    let node: FieldSetBuilder = this;
    path.forEach((element, index) => {
      if (index === path.length - 1) node.#members.add(element);
      else {
        const child = node.#children.get(element) ?? new FieldSetBuilder();
        node.#children.set(element, child);
        node = child;
      }
    });
  }

  build(): FieldSet {
    return new FieldSet(
      this.#members,
      new Map([...this.#children].map(([element, child]) => [element, child.build()])),
    );
  }
}

function keep(children: Map<PathElement, FieldSet>, element: PathElement, child: FieldSet): void {
  if (!child.isEmpty) children.set(element, child);
}

/** The path element of a list item with these keys. */
export function keyElement(keys: JsonObject): PathElement {
  const names = Object.keys(keys).sort();
  return `k:${encodeJson(Object.fromEntries(names.map((name) => [name, keys[name]])))}`;
}

/** The path element of an item of a set. */
export function valueElement(value: Json): PathElement {
  return `v:${encodeJson(value)}`;
}

/** Normalizes an element, because its client may have written the key or value with other spacing or order. */
function normalize(element: PathElement): PathElement {
  const kind = element.slice(0, 2);
  if (kind !== "k:" && kind !== "v:") return element;
  try {
    const value = parseJson(element.slice(2)) as Json;
    return kind === "k:" && isObject(value) ? keyElement(value) : valueElement(value);
  } catch {
    return element;
  }
}

/** Formats a path as messages show it: `.spec.containers[name="a"].image`. */
export function pathText(path: readonly PathElement[]): string {
  const texts = path.map((element) => {
    const rest = element.slice(2);
    if (element.startsWith("f:")) return `.${rest}`;
    if (element.startsWith("v:")) return `[=${rest}]`;
    if (element.startsWith("i:")) return `[${rest}]`;
    const keys = Object.entries(parseJson(rest) as JsonObject);
    return `[${keys.map(([name, value]) => `${name}=${encodeJson(value)}`).join(",")}]`;
  });
  return texts.join("");
}
