import { cidr } from "./cidr.ts";
import { conversions } from "./conversions.ts";
import { encoders } from "./encoders.ts";
import { ip } from "./ip.ts";
import type { Library, LibraryFunction } from "./library.ts";
import { lists } from "./lists.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import { namedFormats } from "./named-format.ts";
import { optionals } from "./optionals.ts";
import { quantities } from "./quantities.ts";
import { regex } from "./regex.ts";
import { RegularExpression } from "./regular-expression.ts";
import { semver } from "./semver.ts";
import { sets } from "./sets.ts";
import { strings } from "./strings.ts";
import { times } from "./times.ts";
import { urls } from "./url.ts";
import {
  declareClass,
  isDouble,
  isInt,
  isMap,
  Namespace,
  Optional,
  TypeValue,
  typeName,
  Uint,
  type Value,
} from "./value.ts";

/** Every function that a condition can call, apart from CEL's macros. */
export const libraries: readonly Library[] = [
  conversions,
  strings,
  times,
  optionals,
  regex,
  lists,
  sets,
  encoders,
  quantities,
  urls,
  ip,
  cidr,
  semver,
  namedFormats,
];

type Accepts = (value: Value) => boolean;

const primitives: Readonly<Record<string, Accepts>> = {
  string: (value) => typeof value === "string" || value instanceof RegularExpression,
  bool: (value) => typeof value === "boolean",
  int: isInt,
  uint: (value) => value instanceof Uint,
  double: isDouble,
  bytes: (value) => value instanceof Uint8Array,
  list: Array.isArray,
  map: isMap,
  type: (value) => value instanceof TypeValue,
  optional: (value) => value instanceof Optional,
  OptionalNamespace: (value) => value instanceof Namespace,
};

const any: Accepts = () => true;

/** Returns the check of a parameter's type. The elements of a list are checked by the function itself. */
function acceptor(type: string): Accepts {
  const [kind = ""] = type.split("<");
  if (kind === "dyn" || /^[A-Z]$/.test(kind)) return any;
  return primitives[kind] ?? ((value) => typeName(value) === kind);
}

interface Overload {
  readonly accepts: readonly Accepts[];
  readonly call: (meter: Meter, ...values: Value[]) => Value;
}

const signatureParts = /^(?:([\w.<>]+)\.)?(\w+)\(([^)]*)\):/;

/** By name, kind (function or method), and number of values including the receiver. */
const overloads = new Map<string, Overload[]>();

const keyOf = (name: string, member: boolean, count: number): string => `${member ? "." : ""}${name}/${count}`;

function define([signature, call]: LibraryFunction): void {
  const [, receiver, name = "", list = ""] = signatureParts.exec(signature) ?? [];
  const types = [...(receiver ? [receiver] : []), ...(list ? list.split(/,\s*/) : [])];
  const key = keyOf(name, receiver !== undefined, types.length);
  const made: Overload = { accepts: types.map(acceptor), call: call as Overload["call"] };
  overloads.set(key, [...(overloads.get(key) ?? []), made]);
}

for (const { types = [], functions } of libraries) {
  for (const [name, declared] of types) declareClass(name, declared);
  for (const each of functions) define(each);
}

export const namespaces: ReadonlyMap<string, Namespace> = new Map(
  ["cel", ...libraries.flatMap(({ namespaces: names = [] }) => names)].map((name) => [name, new Namespace(name)]),
);

/**
 * Returns the function with that name, which is called with the meter and its values, the receiver first if it has one.
 * `undefined` if no function takes this many values.
 */
export function functionOf(
  name: string,
  member: boolean,
  count: number,
): ((meter: Meter, values: Value[]) => Value) | undefined {
  const all = overloads.get(keyOf(name, member, count));
  if (!all) return undefined;
  return (meter, values) => {
    for (const { accepts, call } of all) {
      if (accepts.every((fits, index) => fits(values[index]))) return call(meter, ...values);
    }
    const [first, ...rest] = values.map(typeName);
    const call = member ? `${first}.${name}(${rest.join(", ")})` : `${name}(${[first, ...rest].join(", ")})`;
    throw new EvaluationError(`no such overload: ${call}`);
  };
}
