import { EvaluationError } from "./meter.ts";
import { isMap, keyOf, mapGet, numberOf, Optional, typeName, type Value } from "./value.ts";

/** Evaluates `map.name`. For an optional, returns an optional. */
export function field(value: Value, name: string): Value {
  if (value instanceof Optional) return optionalField(value, name);
  if (!isMap(value) || Array.isArray(value)) throw new EvaluationError(`${typeName(value)} has no fields: ${name}`);
  const found = mapGet(value, name);
  if (found === undefined) throw new EvaluationError(`no such key: ${name}`);
  return found;
}

/** Evaluates `list[index]` and `map[key]`. For an optional, returns an optional. */
export function element(value: Value, key: Value): Value {
  if (value instanceof Optional) return optionalElement(value, key);
  if (Array.isArray(value)) {
    const index = numberOf(key);
    if (index === undefined || !Number.isInteger(index))
      throw new EvaluationError(`${typeName(key)} is no index of a list`);
    if (index < 0 || index >= value.length) throw new EvaluationError(`index ${index} out of ${value.length} elements`);
    return value[index];
  }
  if (!isMap(value)) throw new EvaluationError(`${typeName(value)} has no elements`);
  if (keyOf(key) === undefined) throw new EvaluationError(`${typeName(key)} is no key of a map`);
  const found = mapGet(value, key);
  if (found === undefined) throw new EvaluationError("no such key");
  return found;
}

/** True if `value.name` exists. False for values without fields. */
export function hasField(value: Value, name: string): boolean {
  if (value instanceof Optional) return value.value !== undefined && hasField(value.value, name);
  return isMap(value) && mapGet(value, name) !== undefined;
}

/** Evaluates `value.?name`. */
export function optionalField(value: Value, name: string): Optional {
  const inner = value instanceof Optional ? value.value : value;
  return inner !== undefined && hasField(inner, name) ? new Optional(field(inner, name)) : Optional.none;
}

/** Evaluates `value[?key]`. */
export function optionalElement(value: Value, key: Value): Optional {
  const inner = value instanceof Optional ? value.value : value;
  return inner !== undefined && hasElement(inner, key) ? new Optional(element(inner, key)) : Optional.none;
}

function hasElement(value: Value, key: Value): boolean {
  if (isMap(value)) return mapGet(value, key) !== undefined;
  return Array.isArray(value) && value[numberOf(key) ?? -1] !== undefined;
}
