import { type ASTNode, childrenOf } from "@watchfire/cel";
import { parseValues } from "./exact-json.ts";
import { type ObjectText, RawFields } from "./raw-fields.ts";

/** The names of a field from the outside in; an empty path is the whole object. */
export type FieldPath = readonly string[];

/**
 * The number of names of a path that are followed. Each takes another pass over a value that the object's writer may make large.
 */
const mostNames = 4;

/**
 * Cache of the last object read, by the fields read of it: a change is judged by one function after the other, and many name the
 * same fields. It has one object only, so that it keeps nothing else alive.
 */
const last: { body: Buffer | undefined; readonly parsed: Map<string, unknown> } = {
  body: undefined,
  parsed: new Map(),
};

/** Reads the fields of an object that expressions name: parses only those, to values of CEL. */
export class NamedFields {
  /** `undefined` if expressions read the whole object. */
  private readonly fields: RawFields | undefined;
  private readonly names: string;

  constructor(paths: readonly FieldPath[]) {
    const isWhole = paths.some((path) => path.length === 0);
    const read = isWhole ? [] : paths.map((path) => path.slice(0, mostNames));
    if (!isWhole) this.fields = new RawFields(read);
    this.names = isWhole ? "" : JSON.stringify(read.map((path) => JSON.stringify(path)).sort());
  }

  /** Same as `read`, but shared by all readers of the same fields of the last object. The result must not be changed. */
  readShared(object: ObjectText): unknown {
    if (last.body !== object.body) {
      last.body = object.body;
      last.parsed.clear();
    }
    const found = last.parsed.get(this.names);
    if (found !== undefined) return found;
    const parsed = this.read(object);
    last.parsed.set(this.names, parsed);
    return parsed;
  }

  read(object: ObjectText): unknown {
    return parseValues(this.fields?.excerpt(object) ?? object.body.toString());
  }
}

/** Returns the fields of a variable that an expression names; and more if a macro's variable has the same name. */
export function pathsOf(node: ASTNode, variable: string): readonly FieldPath[] {
  const path = pathTo(node, variable);
  return path ? [path] : childrenOf(node).flatMap((child) => pathsOf(child, variable));
}

/** Returns the path of a chain of names that begins at the variable; `undefined` for anything else. */
export function pathTo(node: ASTNode, variable: string): FieldPath | undefined {
  switch (node.op) {
    case "id":
      return node.args === variable ? [] : undefined;
    case ".":
    case ".?":
      return longer(pathTo(node.args[0], variable), node.args[1]);
    case "[]":
    case "[?]": {
      const [of, key] = node.args;
      return key.op === "value" && typeof key.args === "string" ? longer(pathTo(of, variable), key.args) : undefined;
    }
    default:
      return undefined;
  }
}

const longer = (path: FieldPath | undefined, name: string): FieldPath | undefined => path && [...path, name];

/** The object before a change, as far as it is stored. The fields that conditions name are parsed on the first read. */
export class PreviousObject {
  /** The previous object of an Added. */
  static readonly none = new PreviousObject(undefined, new NamedFields([]));
  private readonly body: Buffer | undefined;
  private readonly fields: NamedFields;
  private parsed: unknown;

  /** @param fields the fields that conditions name */
  constructor(body: Buffer | undefined, fields: NamedFields) {
    this.body = body;
    this.fields = fields;
  }

  get value(): unknown {
    if (!this.body) return null;
    this.parsed ??= this.fields.read({ body: this.body });
    return this.parsed;
  }

  /** Whether a condition without a value on it may have one on the whole object. */
  get isPartial(): boolean {
    return this.body !== undefined && isMetadataAlone(JSON.parse(this.body.toString()));
  }
}

const metadataMembers: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/** Whether an object may be one that `lastBody: Metadata` stores. */
export const isMetadataAlone = (object: unknown): boolean =>
  object !== null && typeof object === "object" && Object.keys(object).every((name) => metadataMembers.has(name));
