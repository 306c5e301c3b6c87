import { digitsOf, errorText } from "./failure.guest.ts";
import { apply, bare, keysOf, PrimordialError, put, quote, replacedJson, stringOf } from "./primordials.guest.ts";

/** Stands for a value that cannot be looked at: a getter, a proxy or a `toJSON` throws. */
const unprintable = "[unprintable]";
/** Values inside of each other that are printed; the schemas of CustomResourceDefinitions come to some 40. */
const maxDepth = 100;

/**
 * A value as JSON, with something in the place of a value that JSON has no form for. That is an error's name, message
 * and stack, or a BigInt's digits. It is a word for a function, a symbol, a cycle and a value that lies too deep.
 * Undefined for undefined. What throws while it is looked at is thrown on.
 */
function json(value: unknown): string | undefined {
  // Those that the value at hand lies in, outermost first.
  const ancestors = bare<Record<number, unknown>>();
  let depth = 0;
  return replacedJson(value, function (this: unknown, _key: string, each: unknown): unknown {
    switch (typeof each) {
      case "bigint":
        return digitsOf(each);
      case "function":
        return "[function]";
      case "symbol":
        return apply(symbolText, each, []);
      case "object":
        break;
      default:
        return each;
    }
    if (each === null) return null;
    while (depth > 0 && ancestors[depth - 1] !== this) depth--;
    for (let at = 0; at < depth; at++) if (ancestors[at] === each) return "[circular]";
    if (depth >= maxDepth) return "[deep]";
    const shown = each instanceof PrimordialError ? errorFields(each) : each;
    // JSON goes on inside what stands for an error; a cause that is the error itself is still found.
    ancestors[depth++] = each;
    if (shown !== each) ancestors[depth++] = shown;
    return shown;
  });
}

const symbolText = Symbol.prototype.toString;

/** An error's name, message and stack, its cause, and what else it carries, such as the SDK's `status`. */
function errorFields(error: Error): object {
  const { name, message, stack } = errorText(error);
  const fields = bare<Record<string, unknown>>();
  const keys = keysOf(error);
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] as string;
    put(fields, key, (error as unknown as Record<string, unknown>)[key]);
  }
  put(fields, "name", name);
  put(fields, "message", message);
  put(fields, "stack", stack);
  if (error.cause !== undefined) put(fields, "cause", error.cause);
  return fields;
}

/** An object's fields as a JSON object. Where one of them cannot be looked at, that one alone is left out of it. */
export function printFields(fields: object): string {
  try {
    return json(fields) ?? "";
  } catch {
    return fieldByField(fields);
  }
}

function fieldByField(fields: object): string {
  let text = "";
  try {
    const keys = keysOf(fields);
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at] as string;
      const value = printField(fields, key);
      if (value !== undefined) text += `${text === "" ? "" : ","}${quote(key)}:${value}`;
    }
  } catch {
    return `{"unprintable":true}`;
  }
  return `{${text}}`;
}

function printField(fields: object, key: string): string | undefined {
  try {
    return json((fields as Record<string, unknown>)[key]);
  } catch {
    return quote(unprintable);
  }
}

/** A value as one piece of a console line. */
export function print(value: unknown): string {
  try {
    if (typeof value === "string") return value;
    if (value instanceof PrimordialError) {
      const { name, message, stack } = errorText(value);
      return stack === "" ? `${name}: ${message}` : stack;
    }
    if (typeof value === "bigint") return digitsOf(value);
    if (typeof value === "object" && value !== null) return json(value) ?? stringOf(value);
    return stringOf(value);
  } catch {
    return unprintable;
  }
}
