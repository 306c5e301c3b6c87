/** JSON with exact whole numbers. Also used inside the sandbox: `primordials.guest.ts` lists what it must not call. */
import { InvalidError } from "./errors.ts";
import { sourceAt, sourceMark } from "./whole-number.ts";

const { bind, call } = Function.prototype;
const { parse, stringify, rawJSON } = JSON as JSON & { rawJSON(text: string): object };
const { defineProperty, getOwnPropertyDescriptor, setPrototypeOf } = Reflect;
const { isInteger, isSafeInteger } = Number;
const create: (prototype: null) => object = Object.create;
const text = String;
const exec: (pattern: RegExp, text: string) => unknown = bind.call(call, RegExp.prototype.exec);

/** Matches JSON that may contain a whole number of 2^53 or more, which has at least 16 digits. */
const longNumber = /[-:,[\s]\d{16}/;
/** From this number on JSON uses an exponent, and readers treat the number as floating-point. */
const firstWithExponent = 1e21;
/** Largest whole number of the API server; it treats larger ones as floating-point numbers. */
const maxInt64 = 2n ** 63n - 1n;

/** State of one reader and writer: one attempt. */
export interface NumbersReader {
  /** Texts of the inexact numbers that were read, by the number; empty if one number stands for several texts. */
  numbers: Record<number, string> | undefined;
}

/** Whether a number is whole and may stand for several whole numbers: beyond 2^53, JavaScript can represent only some. */
export const isInexact = (value: number): boolean =>
  isInteger(value) && !isSafeInteger(value) && value < firstWithExponent && value > -firstWithExponent;

const bare = <T extends object>(): T => create(null) as T;

/** Defines a property by a descriptor without prototype. Returns false if that is impossible. */
function define(holder: object, key: PropertyKey, descriptor: PropertyDescriptor): boolean {
  setPrototypeOf(descriptor, null);
  return defineProperty(holder, key, descriptor);
}

/** A number in a text, and its location. */
interface Found {
  readonly holder: object;
  readonly key: string;
  readonly number: number;
  readonly source: string;
}

/**
 * Parses JSON. A whole number that JavaScript cannot hold exactly is read as the nearest one that it can, and keeps its text for
 * `writeJson` until its field is assigned. Texts without numbers of 16 digits cost one match of a pattern.
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

/**
 * Stores a number's text in its field, on the field's getter. A copy of the value does not have the text, nor does the field
 * after an assignment.
 */
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

/** Moves a member of an object returned by `parseJson`, together with its number's text. */
export function moveMember(from: object, to: object, key: string): void {
  define(to, key, getOwnPropertyDescriptor(from, key) as PropertyDescriptor);
}

/**
 * Writes JSON. A number that JavaScript cannot hold exactly is written with the text that was read for it. A copy of such a
 * number is recognised by its value, if this reader has read that value with one text only. A BigInt is written with its digits.
 *
 * @param what the arguments' owner, for the error
 * @throws InvalidError for any other whole number of 2^53 or more, and for a BigInt of more than 64 bits
 */
export function writeJson(value: unknown, reader: NumbersReader, what: string): string | undefined {
  try {
    const json = stringify(value);
    if (json === undefined || exec(longNumber, json) === null) return json;
  } catch {
    // It contains a BigInt, or will fail again below.
  }
  // Ancestors of the current value, outermost first, and their keys.
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

/** Returns a path such as `object.spec.ids[0]`. */
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
