import { EvaluationError } from "./meter.ts";

const billion = 1_000_000_000n;
/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z in seconds: the range of google.protobuf.Timestamp. */
const firstSecond = -62_135_596_800n;
const lastSecond = 253_402_300_799n;
/** google.protobuf.Duration has nanoseconds in 64 bits in Go. */
const longest = 2n ** 63n;

const nanosecondsOf: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  ms: 1_000_000n,
  s: billion,
  m: 60n * billion,
  h: 3600n * billion,
};

const floorDivide = (value: bigint, by: bigint): bigint => (value - (((value % by) + by) % by)) / by;

/** A duration, in nanoseconds. */
export class Duration {
  readonly nanoseconds: bigint;

  constructor(nanoseconds: bigint) {
    if (nanoseconds >= longest || nanoseconds < -longest) throw new EvaluationError("duration overflow");
    this.nanoseconds = nanoseconds;
  }

  /** Parses Go's format: `1h30m`, `-1.5s`. */
  static parse(text: string): Duration {
    const [, sign, spans = ""] =
      /^([+-]?)((?:(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:ns|us|µs|ms|s|m|h))+|0)$/.exec(text.slice(0, 1000)) ?? [];
    if (sign === undefined) throw new EvaluationError(`duration() cannot convert a text of ${text.length} characters`);
    let total = 0n;
    for (const [, whole = "", fraction = "", unit = "s"] of spans.matchAll(/(\d*)(?:\.(\d*))?(ns|us|µs|ms|s|m|h)/g)) {
      total += (BigInt(whole + fraction || 0) * (nanosecondsOf[unit] ?? 1n)) / 10n ** BigInt(fraction.length);
    }
    return new Duration(sign === "-" ? -total : total);
  }

  compareTo(other: unknown): number {
    return other instanceof Duration ? Number(this.nanoseconds - other.nanoseconds) : Number.NaN;
  }

  plus(other: unknown, sign: 1 | -1): Duration | Timestamp | undefined {
    if (other instanceof Duration) return new Duration(this.nanoseconds + other.nanoseconds * BigInt(sign));
    return other instanceof Timestamp && sign === 1 ? other.plus(this, 1) : undefined;
  }

  toString(): string {
    const negative = this.nanoseconds < 0n;
    const digits = String(negative ? -this.nanoseconds : this.nanoseconds).padStart(10, "0");
    const fraction = digits.slice(-9).replace(/0+$/, "");
    return `${negative ? "-" : ""}${digits.slice(0, -9)}${fraction && `.${fraction}`}s`;
  }
}

/** Parses the offsets `Z`, `+02:00`, `-00:30`. */
function offsetMs(zone: string): number {
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4));
  return (zone.startsWith("-") ? -minutes : minutes) * 60_000;
}

/** A point in time, in nanoseconds. */
export class Timestamp {
  readonly nanoseconds: bigint;

  constructor(nanoseconds: bigint) {
    const seconds = floorDivide(nanoseconds, billion);
    if (seconds < firstSecond || seconds > lastSecond) throw new EvaluationError("timestamp overflow");
    this.nanoseconds = nanoseconds;
  }

  /** Parses RFC 3339, in which Kubernetes writes times. Truncates to nanoseconds, as Go does. */
  static parse(text: string): Timestamp {
    const [, seconds = "", fraction = "", zone = ""] =
      /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,40}))?(Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)$/.exec(
        text.slice(0, 70),
      ) ?? [];
    const date = new Date(`${seconds}Z`);
    // JavaScript reads 30 February as 1 March, and 24:00 as the next day.
    if (seconds === "" || Number.isNaN(date.getTime()) || !date.toISOString().startsWith(seconds)) {
      throw new EvaluationError(`timestamp() cannot convert a text of ${text.length} characters`);
    }
    const nanoseconds = BigInt(fraction.slice(0, 9).padEnd(9, "0"));
    return new Timestamp(BigInt(date.getTime() - offsetMs(zone)) * 1_000_000n + nanoseconds);
  }

  get seconds(): bigint {
    return floorDivide(this.nanoseconds, billion);
  }

  get milliseconds(): number {
    return Number(floorDivide(this.nanoseconds, 1_000_000n));
  }

  compareTo(other: unknown): number {
    return other instanceof Timestamp ? Number(this.nanoseconds - other.nanoseconds) : Number.NaN;
  }

  plus(other: unknown, sign: 1 | -1): Duration | Timestamp | undefined {
    if (other instanceof Duration) return new Timestamp(this.nanoseconds + other.nanoseconds * BigInt(sign));
    return other instanceof Timestamp && sign === -1 ? new Duration(this.nanoseconds - other.nanoseconds) : undefined;
  }

  toString(): string {
    const fraction = String(this.nanoseconds - this.seconds * billion)
      .padStart(9, "0")
      .replace(/0+$/, "");
    return new Date(Number(this.seconds) * 1000).toISOString().replace(/\.000Z$/, `${fraction && `.${fraction}`}Z`);
  }
}
