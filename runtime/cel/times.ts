import type { Library, LibraryFunction } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";
import { Duration, Timestamp } from "./time.ts";
import { int, type Value } from "./value.ts";

const dayMs = 86_400_000;
/** Costs of parsing a time, and of reading a field of a date. */
const reading = 500;
const parting = 100;

/** Fields of a UTC date, by CEL's name. */
const parts: Readonly<Record<string, (date: Date) => number>> = {
  getDate: (date) => date.getUTCDate(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear: (date) => Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / dayMs),
  getFullYear: (date) => date.getUTCFullYear(),
  getHours: (date) => date.getUTCHours(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
  getMinutes: (date) => date.getUTCMinutes(),
  getMonth: (date) => date.getUTCMonth(),
  getSeconds: (date) => date.getUTCSeconds(),
};

const formats = new Map<string, Intl.DateTimeFormat>();
/** Maximum number of cached formats, because names of zones may come from objects. */
const mostFormats = 50;

/** Maximum length of a zone's name. The longest in the tz database has 32 characters. */
const longestZone = 64;

/** Returns the date in a zone, such as `Europe/Berlin` or `-02:30`, as if it were UTC. */
function inZone(meter: Meter, { milliseconds }: Timestamp, zone: string): Date {
  const [, sign, hours, minutes] = /^([+-]?)(\d{1,2}):(\d{1,2})$/.exec(zone) ?? [];
  if (hours !== undefined) {
    return new Date(milliseconds + (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000);
  }
  // An unknown zone takes 10 to 100 us.
  if (zone === "") return new Date(milliseconds);
  if (zone.length > longestZone) throw new EvaluationError("unknown time zone");
  meter.pay(formats.has(zone) ? 800 : 10_000);
  let format = formats.get(zone);
  try {
    format ??= new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  } catch {
    throw new EvaluationError("unknown time zone");
  }
  if (formats.size < mostFormats) formats.set(zone, format);
  const offset = format.formatToParts(milliseconds).find(({ type }) => type === "timeZoneName")?.value ?? "";
  return new Date(milliseconds + offsetMs(offset));
}

/** Parses the offsets `GMT`, `GMT+02:00`, `GMT-00:25:21`. */
function offsetMs(text: string): number {
  const [, sign, hours = 0, minutes = 0, seconds = 0] = /^GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text) ?? [];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
}

function partOf(meter: Meter, part: (date: Date) => number, { milliseconds }: Timestamp): number {
  meter.pay(parting);
  return part(new Date(milliseconds));
}

function timestamp(meter: Meter, text: string): Timestamp {
  meter.pay(reading);
  return Timestamp.parse(text);
}

function duration(meter: Meter, text: string): Duration {
  meter.pay(reading + text.length);
  return Duration.parse(text);
}

const perPart = Object.entries(parts).flatMap(([name, part]): LibraryFunction[] => [
  [`google.protobuf.Timestamp.${name}(): int`, (meter, time: Timestamp) => partOf(meter, part, time)],
  [
    `google.protobuf.Timestamp.${name}(string): int`,
    (meter, time: Timestamp, zone: string) => part(inZone(meter, time, zone)),
  ],
]);

/** Units of a duration's getters, which return the whole duration in that unit, including milliseconds. */
const spans: Readonly<Record<string, bigint>> = {
  getHours: 3_600_000_000_000n,
  getMinutes: 60_000_000_000n,
  getSeconds: 1_000_000_000n,
  getMilliseconds: 1_000_000n,
};

const perSpan = Object.entries(spans).map(
  ([name, unit]): LibraryFunction => [
    `google.protobuf.Duration.${name}(): int`,
    (_, { nanoseconds }: Duration): Value => int(nanoseconds / unit),
  ],
);

/** CEL's timestamps and durations. */
export const times: Library = {
  types: [
    ["google.protobuf.Timestamp", Timestamp],
    ["google.protobuf.Duration", Duration],
  ],
  functions: [
    ["timestamp(string): google.protobuf.Timestamp", timestamp],
    [
      "timestamp(int): google.protobuf.Timestamp",
      (_, seconds: number) => new Timestamp(BigInt(seconds) * 1_000_000_000n),
    ],
    ["timestamp(google.protobuf.Timestamp): google.protobuf.Timestamp", (_, time: Timestamp) => time],
    ["duration(string): google.protobuf.Duration", duration],
    ["duration(google.protobuf.Duration): google.protobuf.Duration", (_, span: Duration) => span],
    ...perPart,
    ...perSpan,
  ],
};
