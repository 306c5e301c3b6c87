import { toText } from "./conversions.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import { isDouble, isInt, isMap, mapGet, mapKeys, numberOf, TypeValue, typeName, Uint, type Value } from "./value.ts";

/** Evaluates `"%s is %d".format(["a", 1])`: cel-go's extension of strings, version 2. */
export function formatText(meter: Meter, template: string, values: readonly Value[]): string {
  let next = 0;
  meter.payText(template.length, 4);
  let written = "";
  let end = 0;
  // One clause at a time: `replace` would find all of them before the first is paid.
  for (const { 0: clause, 1: precision = "6", 2: verb = "", index } of template.matchAll(clauses)) {
    meter.pay(clauseCost);
    written += template.slice(end, index);
    end = index + clause.length;
    if (clause === "%%") written += "%";
    else {
      meter.pay(150);
      if (next >= values.length) throw new EvaluationError(`format() has no value number ${next + 1}`);
      const text = formatted(meter, verb, values[next++], Number(precision), clause);
      meter.payText(text.length, 2);
      written += text;
    }
  }
  if (next < values.length) throw new EvaluationError(`format() has ${values.length} values for ${next} clauses`);
  return written + template.slice(end);
}

const clauses = /%(?:\.(\d+))?([\s\S])|%$/g;

/** Returns the number of values that a template takes. */
export const clausesOf = (template: string): number =>
  [...template.matchAll(clauses)].filter(([clause]) => clause !== "%%").length;

/** Cost of finding a clause: 250 ns. */
const clauseCost = 25;

function formatted(meter: Meter, verb: string, value: Value, precision: number, clause: string): string {
  const number = numberOf(value);
  if (precision > 100) throw new EvaluationError(`format() writes at most 100 digits, not ${precision}`);
  switch (verb) {
    case "s":
      return shown(meter, value, 0);
    case "d":
      if (isInt(value) || value instanceof Uint || isSpecial(number)) return shown(meter, value, 0);
      break;
    case "f":
      if (isDouble(value) && number !== undefined) return special(number) ?? number.toFixed(precision);
      break;
    case "e":
      if (isDouble(value) && number !== undefined) {
        meter.pay(50);
        return special(number) ?? number.toExponential(precision).replace(/e([+-])(\d)$/, "e$10$2");
      }
      break;
    case "b":
      if (typeof value === "boolean") return value ? "1" : "0";
      if (isInt(value) || value instanceof Uint) return whole(value).toString(2);
      break;
    case "o":
      if (isInt(value) || value instanceof Uint) return whole(value).toString(8);
      break;
    case "x":
      return hex(meter, value, clause);
    case "X":
      return hex(meter, value, clause).toUpperCase();
  }
  throw new EvaluationError(`format() cannot write ${typeName(value)} as ${clause}`);
}

const whole = (value: number | bigint | Uint): bigint => (value instanceof Uint ? value.value : BigInt(value));

function hex(meter: Meter, value: Value, clause: string): string {
  if (isInt(value) || value instanceof Uint) return whole(value).toString(16);
  if (typeof value === "string" || value instanceof Uint8Array) {
    meter.payText(value.length, 4);
    return Buffer.from(value as string).toString("hex");
  }
  throw new EvaluationError(`format() cannot write ${typeName(value)} as ${clause}`);
}

const isSpecial = (number: number | undefined): boolean => number !== undefined && !Number.isFinite(number);
const special = (number: number): string | undefined =>
  Number.isFinite(number) ? undefined : Number.isNaN(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";

/** Formats a value as `%s` does, including lists and maps, with sorted keys. */
function shown(meter: Meter, value: Value, depth: number): string {
  meter.pay(8);
  meter.enter(depth);
  if (value === null) return "null";
  if (value instanceof TypeValue) return value.type;
  if (Array.isArray(value)) return `[${value.map((item) => shown(meter, item, depth + 1)).join(", ")}]`;
  if (!isMap(value)) {
    const number = numberOf(value);
    const text = (number !== undefined && special(number)) || toText(value);
    meter.payText(text.length, 2);
    return text;
  }
  const keys = mapKeys(meter, value).map((key) => [shown(meter, key, depth + 1), key] as const);
  meter.pay(keys.length * 20);
  keys.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${keys.map(([text, key]) => `${text}: ${shown(meter, mapGet(value, key), depth + 1)}`).join(", ")}}`;
}
