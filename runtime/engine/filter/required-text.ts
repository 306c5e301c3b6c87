import type { ASTNode } from "@watchfire/cel";
import { type FieldPath, type NamedFields, pathTo } from "./named-fields.ts";
import type { ObjectText } from "./raw-fields.ts";

/** What was read last: a change is judged by one function after the other, and many ask for the same field. */
const last: { body: Buffer | undefined; path: string; text: unknown } = { body: undefined, path: "", text: undefined };

/** A text that a condition asks of a field before all else: `object.metadata.labels.app == "web"`, or that in front of `&&`. */
export class RequiredText {
  private readonly names: FieldPath;
  /** The names of the field, as one text. */
  readonly field: string;
  /** The text that is asked for. */
  readonly value: string;

  private constructor(names: FieldPath, text: string) {
    this.names = names;
    this.field = JSON.stringify(names);
    this.value = text;
  }

  /** What an expression demands; undefined where it begins with something else. */
  static of(node: ASTNode): RequiredText | undefined {
    if (node.op === "&&") return RequiredText.of(node.args[0]);
    if (node.op !== "==") return undefined;
    const [left, right] = node.args;
    const [field, value] = left.op === "value" ? [right, left] : [left, right];
    const names = pathTo(field, "object");
    return names && value.op === "value" && typeof value.args === "string"
      ? new RequiredText(names, value.args)
      : undefined;
  }

  /** Whether another text stands there: a quick look that evaluates nothing. `fields`: those that are read of the object, this one among them. */
  isRefusedBy(object: ObjectText, fields: NamedFields): boolean {
    const text = this.textIn(object, fields);
    return text !== undefined && text !== this.value;
  }

  /** The text that stands there; undefined where there is none. */
  textIn(object: ObjectText, fields: NamedFields): string | undefined {
    if (last.body !== object.body || last.path !== this.field) {
      last.text = this.read(fields.readShared(object));
      last.path = this.field;
      last.body = object.body;
    }
    return typeof last.text === "string" ? last.text : undefined;
  }

  private read(object: unknown): unknown {
    let value = object;
    for (const name of this.names) {
      const isThere =
        typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name);
      if (!isThere) return undefined;
      value = (value as Record<string, unknown>)[name];
    }
    return value;
  }
}
