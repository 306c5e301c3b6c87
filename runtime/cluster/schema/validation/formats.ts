import { isIPv4, isIPv6 } from "node:net";
import type { Schema } from "../schema.ts";

const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
/** Seconds of each unit of a duration, and its names; a word that begins with the last one is the unit as well. */
const units: readonly (readonly [seconds: number, ...names: string[]])[] = [
  [1e-9, "ns", "nano"],
  [1e-6, "us", "µs", "micro"],
  [1e-3, "ms", "milli"],
  [1, "s", "sec"],
  [60, "m", "min"],
  [3600, "h", "hr", "hour"],
  [86_400, "d", "day"],
  [604_800, "w", "wk", "week"],
];

/**
 * The formats of strings that the API server checks (those that apiextensions supports); any other format is only an annotation.
 */
const checks: Readonly<Record<string, (text: string) => boolean>> = {
  "date-time": isDateTime,
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDay(text),
  duration: (text) => durationSeconds(text) !== undefined,
  byte: (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text),
  email: (text) => /^[^\s@<>]+@[^\s@<>]+$/.test(text),
  hostname: (text) =>
    text.length <= 255 &&
    /^[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])+)*$/.test(text),
  ipv4: isIPv4,
  ipv6: isIPv6,
  cidr: isCidr,
  mac: (text) => /^([0-9a-f]{2}[:-]){5}([0-9a-f]{2}|[0-9a-f]{2}([:-][0-9a-f]{2}){2})$/i.test(text),
  uri: (text) => URL.canParse(text) || (text.startsWith("/") && URL.canParse(text, "http://a")),
  uuid: (text) => uuid.test(text),
  uuid3: (text) => uuid.test(text) && versionOf(text) === "3",
  uuid4: (text) => uuid.test(text) && versionOf(text) === "4",
  uuid5: (text) => uuid.test(text) && versionOf(text) === "5",
  bsonobjectid: (text) => /^[0-9a-f]{24}$/i.test(text),
  hexcolor: (text) => /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.test(text),
  rgbcolor: (text) =>
    /^rgb\(\s*(\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*(,\s*(\d{1,2}|1\d\d|2[0-4]\d|25[0-5])\s*){2}\)$/.test(text),
  ssn: (text) => /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(text),
  "k8s-short-name": (text) => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text),
  "k8s-long-name": (text) =>
    text.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text),
};

/** True if the text has the format; true for a format that is not checked. */
export function matchesFormat(text: string, format: string): boolean {
  return Object.hasOwn(checks, format) ? (checks[format]?.(text) ?? true) : true;
}

/** True if a number is in the range of its type and format: `int32`, `int64`, `float`, `double`. */
export function inRange(value: number | bigint, { type, format }: Schema): boolean {
  if (format === "int32") return value >= -(2 ** 31) && value < 2 ** 31 && isWhole(value);
  if (format === "float") return Math.abs(Number(value)) <= 3.4028234663852886e38;
  // The limits of an int64 are bigints, so a float64 of that size is out of range.
  return type !== "integer" || typeof value === "bigint" || (isWhole(value) && Math.abs(value) < 2 ** 63);
}

const isWhole = (value: number | bigint): boolean => typeof value === "bigint" || Number.isInteger(value);

/**
 * Returns a duration such as `1h30m` in seconds, and undefined for any other text. If it is not in Go's form, every number with a
 * unit counts and the rest is ignored, as in go-openapi's strfmt: `1 hour`, `P1D`.
 */
export function durationSeconds(text: string): number | undefined {
  if (text === "0") return 0;
  const sign = text.startsWith("-") ? -1 : 1;
  const body = text.replace(/^[+-]/, "");
  if (/^(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+$/.test(body))
    return sign * sumOf(body, /(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)/g);
  const total = sumOf(text, /((?:-\s?)?\d+(?:\.\d+)?)\s*([A-Za-zµ]+)/g);
  return Number.isNaN(total) ? undefined : total;
}

/** Returns NaN if no number has a unit. */
function sumOf(text: string, amounts: RegExp): number {
  let total = Number.NaN;
  for (const [, amount = "", unit = ""] of text.matchAll(amounts)) {
    const factor = secondsOf(unit.toLowerCase());
    if (factor !== undefined) total = (Number.isNaN(total) ? 0 : total) + Number(amount.replace(/\s/g, "")) * factor;
  }
  return total;
}

function secondsOf(unit: string): number | undefined {
  return units.find(([, ...names]) => names.includes(unit) || unit.startsWith(names.at(-1) ?? ""))?.[0];
}

function isDateTime(text: string): boolean {
  const match = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:?\d\d)?$/.exec(text);
  return (
    match?.[1] !== undefined &&
    isDay(match[1]) &&
    Number(match[2]) < 24 &&
    Number(match[3]) < 60 &&
    Number(match[4]) < 60
  );
}

function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

function isCidr(text: string): boolean {
  const [address = "", prefix = "", more] = text.split("/");
  if (more !== undefined || !/^\d{1,3}$/.test(prefix)) return false;
  return (isIPv4(address) && Number(prefix) <= 32) || (isIPv6(address) && Number(prefix) <= 128);
}

function versionOf(text: string): string | undefined {
  return text.replaceAll("-", "")[12];
}
