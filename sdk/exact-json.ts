/** JSON whose whole numbers are exact. Used inside the sandbox as well: see `primordials.guest.ts` for what it may not call. */
import { InvalidError } from "./errors.ts";
import { sourceAt, sourceMark } from "./whole-number.ts";

const { bind, call } = Function.prototype;
const { parse, stringify, rawJSON } = JSON as JSON & { rawJSON(text: string): object };
const { defineProperty, getOwnPropertyDescriptor, setPrototypeOf } = Reflect;
const { isInteger, isSafeInteger } = Number;
const create: (prototype: null) => object = Object.create;
const text = String;
const exec: (pattern: RegExp, text: string) => unknown = bind.call(call, RegExp.prototype.exec);

/** Matches JSON that may have a whole number of 2^53 or more: such a number has 16 digits. */
const longNumber = /[-:,[\s]\d{16}/;
/** JSON writes numbers from here on with an exponent, and every reader takes them for floating-point numbers. */
const firstWithExponent = 1e21;
/** The API server keeps whole numbers of 64 bits, and makes floating-point numbers of others. */
const maxInt64 = 2n ** 63n - 1n;

/** Who reads and writes: one attempt. */
export interface NumbersReader {
  /** The texts of the inexact numbers that were read, by the number; empty where one number stands for several texts. */
  numbers: Record<number, string> | undefined;
}

/** Whether a number is whole, and may stand for others as well: JavaScript has only some of those beyond 2^53. */
export const isInexact = (value: number): boolean =>
  isInteger(value) && !isSafeInteger(value) && value < firstWithExponent && value > -firstWithExponent;

const bare = <T extends object>(): T => create(null) as T;

/** Defines a property by a descriptor that inherits nothing. Returns false where it cannot. */
function define(holder: object, key: PropertyKey, descriptor: PropertyDescriptor): boolean {
  setPrototypeOf(descriptor, null);
  return defineProperty(holder, key, descriptor);
}

/** A number of a text, where it stands. */
interface Found {
  readonly holder: object;
  readonly key: string;
  readonly number: number;
  readonly source: string;
}

/**
 * Parses JSON. A whole number that JavaScript cannot hold exactly is read as the nearest that it can. It keeps its text for
 * `writeJson`, until something is assigned to its field. Texts without numbers of 16 digits cost one match of a pattern.
 */
export function parseJson(json: string, reader: NumbersReader): unknown {
  if (exec(longNumber, json) === null) return parse(json);
  const found = bare<Record<number, Found>>();
  let count = 0;
  const value = parse(json, function (this: object, key: string, each: unknown, context?: { source: string }) {
    if (typeof each === "number" && isInexact(each) && context !== undefined) {
      const { source } = context;
      found[count++] = { holder: this, key, number: each, source };
      remember(reader, each, source);
    }
    return each;
  });
  for (let at = 0; at < count; at++) keep(found[at] as Found);
  return value;
}

function remember(reader: NumbersReader, number: number, source: string): void {
  reader.numbers ??= bare<Record<number, string>>();
  const known = reader.numbers[number];
  reader.numbers[number] = known === undefined || known === source ? source : "";
}

/** Has a field keep its number's text. Its getter has it: so a copy of the value has it not, nor has the field once it is set. */
function keep({ holder, key, number, source }: Found): void {
  const { get, set } = {
    get: () => number,
    set(this: object, value: unknown) {
      if (!define(this, key, { value, writable: true, enumerable: true, configurable: true }))
        throw new TypeError(`Cannot assign to read only property '${key}' of object`);
    },
  };
  define(get, sourceMark, { value: source });
  define(holder, key, { get, set, enumerable: true, configurable: true });
}

/** Moves a member of an object that `parseJson` gave, with the text of its number. */
export function moveMember(from: object, to: object, key: string): void {
  define(to, key, getOwnPropertyDescriptor(from, key) as PropertyDescriptor);
}

/**
 * Writes JSON. A number that JavaScript cannot hold exactly is written as the text that was read for it. A copy of
 * it is known by its value, if this reader has read that value in one text alone. A BigInt is written by its digits.
 *
 * @param what whose arguments they are, for the error
 * @throws InvalidError for any other whole number of 2^53 or more, and for a BigInt of more than 64 bits
 */
export function writeJson(value: unknown, reader: NumbersReader, what: string): string | undefined {
  try {
    const json = stringify(value);
    if (json === undefined || exec(longNumber, json) === null) return json;
  } catch {
    // It has a BigInt, or fails again.
  }
  // What the value at hand lies in, outermost first, and by which keys.
  const holders = bare<Record<number, unknown>>();
  const keys = bare<Record<number, string>>();
  let depth = 0;
  return stringify(value, function (this: object, key: string, each: unknown): unknown {
    while (depth > 0 && holders[depth - 1] !== this) depth--;
    if (typeof each === "bigint") {
      if (each > maxInt64 || each < -maxInt64 - 1n) throw tooLarge(what, pathOf(keys, depth, key));
      return rawJSON(text(each));
    }
    if (typeof each === "number" && isInexact(each)) {
      const source = sourceAt(this, key) ?? reader.numbers?.[each] ?? "";
      if (source === "") throw inexact(what, pathOf(keys, depth, key), each);
      return rawJSON(source);
    }
    if (typeof each === "object" && each !== null) {
      holders[depth] = each;
      keys[depth++] = key;
    }
    return each;
  });
}

/** Such as `object.spec.ids[0]`. */
function pathOf(keys: Record<number, string>, depth: number, last: string): string {
  let path = "";
  for (let at = 1; at <= depth; at++) {
    const key = at === depth ? last : (keys[at] as string);
    if (exec(/^\d+$/, key) !== null) path += `[${key}]`;
    else if (exec(/^[A-Za-z_$][\w$]*$/, key) !== null) path += path === "" ? key : `.${key}`;
    else path += `[${stringify(key)}]`;
  }
  return path;
}

const refused = (message: string): InvalidError =>
  new InvalidError(`WF_ACCESS_INEXACT_NUMBER: ${message}`, { status: 400, reason: "BadRequest" });

const inexact = (what: string, path: string, value: number): InvalidError =>
  refused(
    `${what}: ${path} is ${value}, a whole number beyond 2^53 that may be rounded; write a BigInt, such as wholeNumber(object.spec, "id") of @watchfire/sdk reads it`,
  );

const tooLarge = (what: string, path: string): InvalidError =>
  refused(`${what}: ${path} is a BigInt of more than 64 bits, which the API server would round; write it as text`);
