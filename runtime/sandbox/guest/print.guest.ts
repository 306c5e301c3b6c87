import { digitsOf, errorText } from "./failure.guest.ts";
import { apply, bare, keysOf, PrimordialError, put, quote, replacedJson, stringOf } from "./primordials.guest.ts";

/** Replaces a value that cannot be read because a getter, a proxy or `toJSON` throws. */
const unprintable = "[unprintable]";
/** Maximum nesting that is printed. The schemas of CustomResourceDefinitions reach some 40 levels. */
const maxDepth = 100;

/**
 * Returns a value as JSON, with substitutes for values that JSON cannot represent: an error's name, message and stack, a BigInt's
 * digits, and a placeholder for a function, a symbol, a cycle and a value that is nested too deeply. Returns `undefined` for
 * `undefined`. Rethrows errors of getters and proxies.
 */
function json(value: unknown): string | undefined {
  // The objects that contain the current value, outermost first.
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
    // JSON continues inside the substitute of an error. Both are recorded, so that an error that is its own cause is still found.
    ancestors[depth++] = each;
    if (shown !== each) ancestors[depth++] = shown;
    return shown;
  });
}

const symbolText = Symbol.prototype.toString;

/** Returns an error's name, message, stack and cause, and its other properties, such as the SDK's `status`. */
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

/**
 * Returns an object's fields as a JSON object. A field that cannot be read is replaced by itself, without affecting the others.
 */
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

/** Returns a value as one part of a console line. */
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
