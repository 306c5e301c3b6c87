import type { ASTNode } from "@watchfire/cel";
import { type FieldPath, type NamedFields, pathTo } from "./named-fields.ts";
import type { ObjectText } from "./raw-fields.ts";

/** Cache of the last read. A change is judged by one function after the other, and many require the same field. */
const last: { body: Buffer | undefined; path: string; text: unknown } = { body: undefined, path: "", text: undefined };

/** A text that a condition requires of a field before all else: `object.metadata.labels.app == "web"`, alone or before `&&`. */
export class RequiredText {
  private readonly names: FieldPath;
  /** The names of the field, as one string. */
  readonly field: string;
  /** The required text. */
  readonly value: string;

  private constructor(names: FieldPath, text: string) {
    this.names = names;
    this.field = JSON.stringify(names);
    this.value = text;
  }

  /** Returns the text that an expression requires; `undefined` if it starts with something else. */
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

  /**
   * Whether the field has another text: a cheap check that evaluates nothing. `fields` are read of the object, and include this
   * one.
   */
  isRefusedBy(object: ObjectText, fields: NamedFields): boolean {
    const text = this.textIn(object, fields);
    return text !== undefined && text !== this.value;
  }

  /** Returns the field's text; `undefined` if it has no text. */
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
