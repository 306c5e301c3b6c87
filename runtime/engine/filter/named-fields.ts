import { type ASTNode, childrenOf } from "@watchfire/cel";
import { parseValues } from "./exact-json.ts";
import { type ObjectText, RawFields } from "./raw-fields.ts";

/** Names from the outside in; an empty one is the whole. */
export type FieldPath = readonly string[];

/** Names of a path that are followed: each takes another pass over what it holds, and whoever writes objects makes that large. */
const mostNames = 4;

/**
 * What was read last, by what was named of it: a change is judged by one function after the other, and many name the same.
 * One object's, so that it keeps nothing else alive.
 */
const last: { body: Buffer | undefined; readonly parsed: Map<string, unknown> } = {
  body: undefined,
  parsed: new Map(),
};

/** What expressions may read of an object: parsed JSON of no more than that, as values of CEL. */
export class NamedFields {
  /** Undefined where they read all of it. */
  private readonly fields: RawFields | undefined;
  private readonly names: string;

  constructor(paths: readonly FieldPath[]) {
    const isWhole = paths.some((path) => path.length === 0);
    const read = isWhole ? [] : paths.map((path) => path.slice(0, mostNames));
    if (!isWhole) this.fields = new RawFields(read);
    this.names = isWhole ? "" : JSON.stringify(read.map((path) => JSON.stringify(path)).sort());
  }

  /** As `read`, once for all who name the same of one object after the other. What it gives is shared, and never changed. */
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

/** The fields of a variable that an expression names; more may be given where a macro's variable has the same name. */
export function pathsOf(node: ASTNode, variable: string): readonly FieldPath[] {
  const path = pathTo(node, variable);
  return path ? [path] : childrenOf(node).flatMap((child) => pathsOf(child, variable));
}

/** The path of a chain of names that begins at the variable; undefined for anything else. */
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
