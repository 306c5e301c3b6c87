import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import { formatText } from "./string-format.ts";
import type { Value } from "./value.ts";

const surrogate = /[\ud800-\udfff]/;

/** Returns the number of code points, which CEL counts as characters. */
function lengthOf(meter: Meter, text: string): number {
  meter.payText(text.length, 2);
  if (!surrogate.test(text)) return text.length;
  meter.payText(text.length, 10);
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** Returns the characters of a text, or `undefined` if they are its UTF-16 units. */
function characters(meter: Meter, text: string): readonly string[] | undefined {
  meter.payText(text.length, 2);
  if (!surrogate.test(text)) return undefined;
  meter.payText(text.length, 20);
  return [...text];
}

function slice(meter: Meter, text: string, from: number, to?: number): string {
  const points = characters(meter, text);
  const length = points?.length ?? text.length;
  const [start, end] = [Number(from), Number(to ?? length)];
  if (start < 0 || start > end || end > length) {
    throw new EvaluationError(`index out of range: substring(${start}, ${end}) of ${length} characters`);
  }
  return points ? points.slice(start, end).join("") : text.slice(start, end);
}

function charAt(meter: Meter, text: string, index: number): string {
  const points = characters(meter, text);
  const length = points?.length ?? text.length;
  const at = Number(index);
  if (at < 0 || at > length) throw new EvaluationError(`index out of range: charAt(${at}) of ${length} characters`);
  return (points ? points[at] : text.charAt(at)) ?? "";
}

/** A search may take the product of both lengths for texts made to be slow. Kubernetes' `contains` costs as much. */
const paySearch = (meter: Meter, text: string, part: string): void =>
  meter.payText(text.length + part.length, 1 + part.length * 0.3);

function find(meter: Meter, text: string, part: string, from: number | undefined, last: boolean): number {
  paySearch(meter, text, part);
  const points = characters(meter, text);
  const length = points?.length ?? text.length;
  const start = from === undefined ? (last ? length : 0) : Number(from);
  // An empty text is found everywhere, even in an empty text: cel-go returns the given position.
  if (part === "") return start;
  if (start < 0) throw new EvaluationError(`index out of range: ${start} of ${length} characters`);
  if (from !== undefined && start >= length) return -1;
  const unit = points ? points.slice(0, start).join("").length : start;
  const found = last ? text.lastIndexOf(part, unit) : text.indexOf(part, unit);
  return found < 0 || !points ? found : [...text.slice(0, found)].length;
}

/** Returns the positions of a part in a text, at most `most`. Pays for each. */
function positions(meter: Meter, text: string, part: string, most: number): number[] {
  paySearch(meter, text, part);
  const found: number[] = [];
  let at = text.indexOf(part);
  while (at >= 0 && found.length !== most && at + part.length <= text.length) {
    if (part === "" && at === text.length) break;
    meter.pay(5);
    found.push(at);
    at = text.indexOf(part, at + Math.max(1, part.length));
  }
  return found;
}

function split(meter: Meter, text: string, separator: string, limit: number): string[] {
  if (limit === 0) return [];
  if (separator === "") {
    meter.pay(text.length * 5);
    const all = [...text];
    return limit < 0 || all.length <= limit ? all : [...all.slice(0, limit - 1), all.slice(limit - 1).join("")];
  }
  const parts: string[] = [];
  let from = 0;
  for (const at of positions(meter, text, separator, limit < 0 ? -1 : limit - 1)) {
    parts.push(text.slice(from, at));
    from = at + separator.length;
  }
  return [...parts, text.slice(from)];
}

function replace(meter: Meter, text: string, from: string, to: string, limit: number): string {
  const found = positions(meter, text, from, limit);
  if (from === "" && (limit < 0 || found.length < limit)) found.push(text.length);
  meter.payText(text.length + found.length * to.length, 2);
  let [result, at] = ["", 0];
  for (const position of found) {
    result += text.slice(at, position) + to;
    at = position + from.length;
  }
  return result + text.slice(at);
}

function join(meter: Meter, list: readonly Value[], separator: string): string {
  let size = 0;
  for (const item of list) {
    if (typeof item !== "string") throw new EvaluationError("join() takes a list of strings");
    size += item.length + separator.length;
  }
  meter.pay(list.length * 2);
  meter.payText(size, 2);
  return list.join(separator);
}

function mapped(meter: Meter, text: string, change: (text: string) => string): string {
  meter.payText(text.length + 20, 4);
  return change(text);
}

/** CEL's functions on strings, and version 2 of cel-go's extension, as in Kubernetes. */
export const strings: Library = {
  namespaces: ["strings"],
  functions: [
    ["size(string): int", lengthOf],
    ["string.size(): int", lengthOf],
    [
      "string.startsWith(string): bool",
      (meter, text: string, part: string) => {
        meter.payText(part.length);
        return text.startsWith(part);
      },
    ],
    [
      "string.endsWith(string): bool",
      (meter, text: string, part: string) => {
        meter.payText(part.length);
        return text.endsWith(part);
      },
    ],
    [
      "string.contains(string): bool",
      (meter, text: string, part: string) => find(meter, text, part, undefined, false) >= 0,
    ],
    ["string.charAt(int): string", charAt],
    ["string.indexOf(string): int", (meter, text: string, part: string) => find(meter, text, part, undefined, false)],
    [
      "string.indexOf(string, int): int",
      (meter, text: string, part: string, from: number) => find(meter, text, part, from, false),
    ],
    [
      "string.lastIndexOf(string): int",
      (meter, text: string, part: string) => find(meter, text, part, undefined, true),
    ],
    [
      "string.lastIndexOf(string, int): int",
      (meter, text: string, part: string, from: number) => find(meter, text, part, from, true),
    ],
    ["string.substring(int): string", slice],
    ["string.substring(int, int): string", slice],
    ["string.trim(): string", trim],
    ["string.lowerAscii(): string", (meter, text: string) => mapped(meter, text, lowerAscii)],
    ["string.upperAscii(): string", (meter, text: string) => mapped(meter, text, upperAscii)],
    ["string.split(string): list<string>", (meter, text: string, by: string) => split(meter, text, by, -1)],
    [
      "string.split(string, int): list<string>",
      (meter, text: string, by: string, limit: number) => split(meter, text, by, Number(limit)),
    ],
    [
      "string.replace(string, string): string",
      (meter, text: string, from: string, to: string) => replace(meter, text, from, to, -1),
    ],
    [
      "string.replace(string, string, int): string",
      (meter, text: string, from: string, to: string, limit: number) => replace(meter, text, from, to, Number(limit)),
    ],
    ["list<string>.join(): string", (meter, list: Value[]) => join(meter, list, "")],
    ["list<string>.join(string): string", join],
    ["string.format(list<dyn>): string", formatText],
    ["strings.quote(string): string", (meter, _: unknown, text: string) => quote(meter, text)],
  ],
};

/** True for white space as defined by Go: JavaScript's, with U+0085 and without U+FEFF. */
const isSpace = (meter: Meter, text: string, at: number): boolean => {
  meter.pay(5);
  return /[^\S\ufeff]|\u0085/.test(text.charAt(at));
};

function trim(meter: Meter, text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && isSpace(meter, text, from)) from++;
  while (to > from && isSpace(meter, text, to - 1)) to--;
  return text.slice(from, to);
}

const lowerAscii = (text: string): string => text.replace(/[A-Z]+/g, (part) => part.toLowerCase());
const upperAscii = (text: string): string => text.replace(/[a-z]+/g, (part) => part.toUpperCase());

const escapes: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

function quote(meter: Meter, text: string): string {
  // Escaping a character takes 20 ns.
  meter.payText(text.length, 20);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that are escaped
  return `"${text.replace(/[\x07-\r\\"]/g, (one) => escapes[one] ?? one)}"`;
}
