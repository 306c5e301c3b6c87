import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../base/clock.ts";
import { isSpace, openBrace, skipSpace } from "./text-scan.ts";

const newline = 0x0a;
const closeBrace = 0x7d;

/** A value exceeded the limit: no object of Kubernetes is that large, and keeping it would exhaust the heap. */
export class OversizeValue extends Error {
  override readonly name = "OversizeValue";
  readonly limit: number;

  constructor(limit: number) {
    super(`a value is longer than ${limit} bytes`);
    this.limit = limit;
  }
}

/**
 * Limit of a value, in bytes. etcd's default limit of an object is 1.5 MiB; ten times that is neither reached by accident nor a
 * danger to the heap.
 */
export const valueLimit = 16 * 1024 * 1024;

/**
 * Most chunks that are held for one value, so that a stream that trickles does not cost an object per byte; at a socket's usual
 * 64 KiB the value limit is reached first.
 */
export const piecesLimit = 256;

/**
 * Takes `bytes` from `start` to before `end`. A scan returns whether they are one whole value; a consumer returns whether to
 * continue.
 */
type TakeBytes = (bytes: Buffer, start: number, end: number) => boolean;

/** Returned inside `push` when reading must stop. */
const stopped = -1;

/**
 * Cuts a byte stream into JSON objects separated by any white space, as client-go's decoder does. API servers send one per line,
 * so each line is scanned first, split at the line feed alone: U+2028 and U+2029, at which `readline` would split, may occur
 * inside strings. Only a line that is not one whole value, or a value without a line break after it yet, is followed byte by
 * byte. A value within one chunk is delivered in place; one that spans chunks is copied, once. A value that is cut off by the end
 * of the stream is never delivered.
 */
export class ValueReader {
  private readonly scan: TakeBytes;
  private readonly limit: number;
  /** Chunks of an incomplete value: followed to its end while `partial` is open, otherwise the beginning of a line. */
  private tail: Buffer[] = [];
  /** Number of bytes held of an incomplete value. Written here only. */
  pending = 0;
  private readonly partial = new PartialValue();

  /**
   * @param scan returns whether bytes are one whole value, optionally surrounded by white space; called before each value is
   * delivered.
   */
  constructor(scan: TakeBytes, limit = valueLimit) {
    this.scan = scan;
    this.limit = limit;
  }

  /**
   * Calls `value` for each value that ends in `chunk`, just after its scan; it may be surrounded by white space. Stops early when
   * `value` returns false. Throws OversizeValue, or NotJson, after which nothing more can be read.
   */
  push(chunk: Buffer, value: TakeBytes): void {
    let at = 0;
    while (at !== stopped && at < chunk.length) {
      if (this.partial.isOpen) at = this.finish(chunk, at, value);
      else at = this.pending > 0 ? this.finishLine(chunk, value) : this.line(chunk, at, value);
    }
  }

  /** Reads one line, or the chunk's rest if no line ends in it. @returns the index after what was read. */
  private line(chunk: Buffer, from: number, value: TakeBytes): number {
    const end = chunk.indexOf(newline, from);
    if (end === from) return end + 1;
    if (end >= 0) {
      if (end - from > this.limit) throw new OversizeValue(this.limit);
      if (!this.scan(chunk, from, end)) return this.values(chunk, from, end, value);
      return value(chunk, from, end) ? end + 1 : stopped;
    }
    const start = skipSpace(chunk, from);
    if (start === chunk.length) return start;
    if (endsValue(chunk, start)) return this.values(chunk, start, chunk.length, value);
    mustOpen(chunk, start);
    this.hold(chunk, start);
    return chunk.length;
  }

  /** Reads the rest of a line that began in an earlier chunk. @returns the index after what was read. */
  private finishLine(chunk: Buffer, value: TakeBytes): number {
    const newlineAt = chunk.indexOf(newline);
    if (newlineAt < 0 && !endsValue(chunk, 0)) {
      this.hold(chunk, 0);
      return chunk.length;
    }
    const end = newlineAt < 0 ? chunk.length : newlineAt;
    const whole = this.take(chunk, 0, end);
    if (!this.scan(whole, 0, whole.length)) {
      return this.values(whole, 0, whole.length, value) === stopped ? stopped : end;
    }
    return value(whole, 0, whole.length) ? end : stopped;
  }

  /** Reads the values that begin before `until`. @returns the index after them. */
  private values(bytes: Buffer, from: number, until: number, value: TakeBytes): number {
    let start = skipSpace(bytes, from);
    while (start < until) {
      mustOpen(bytes, start);
      const end = this.partial.follow(bytes, start);
      if (end < 0) {
        this.hold(bytes, start);
        return bytes.length;
      }
      if (!this.handOut(bytes, start, end, value)) return stopped;
      start = skipSpace(bytes, end);
    }
    return start;
  }

  /** Reads the rest of an incomplete value. @returns the index after it. */
  private finish(chunk: Buffer, from: number, value: TakeBytes): number {
    const end = this.partial.follow(chunk, from);
    if (end < 0) {
      this.hold(chunk, from);
      return chunk.length;
    }
    const whole = this.take(chunk, from, end);
    return this.handOut(whole, 0, whole.length, value) ? end : stopped;
  }

  private handOut(bytes: Buffer, start: number, end: number, value: TakeBytes): boolean {
    if (end - start > this.limit) throw new OversizeValue(this.limit);
    if (!this.scan(bytes, start, end)) throw new NotJson(`an event of ${end - start} bytes is not JSON`);
    return value(bytes, start, end);
  }

  private hold(bytes: Buffer, from: number): void {
    this.pending += bytes.length - from;
    if (this.pending > this.limit) throw new OversizeValue(this.limit);
    this.tail.push(bytes.subarray(from));
    if (this.tail.length >= piecesLimit) this.tail = [joined(this.tail, this.pending)];
  }

  /** Returns the held chunks and the bytes after them in one buffer, and clears the held chunks. */
  private take(chunk: Buffer, from: number, end: number): Buffer {
    const length = this.pending + end - from;
    if (length > this.limit) throw new OversizeValue(this.limit);
    this.tail.push(chunk.subarray(from, end));
    const whole = joined(this.tail, length);
    this.tail = [];
    this.pending = 0;
    return whole;
  }
}

function mustOpen(bytes: Buffer, at: number): void {
  if (bytes[at] !== openBrace) throw new NotJson("a value other than an object is in the place of an event");
}

/** Whether the last byte from `from` on that is not white space may end a value. */
function endsValue(bytes: Buffer, from: number): boolean {
  let at = bytes.length - 1;
  while (at >= from && isSpace(bytes[at] as number)) at--;
  return at >= from && bytes[at] === closeBrace;
}

/**
 * Joins pieces in memory allocated for them alone: whoever keeps the result would otherwise keep a slab of Node's pool alive,
 * with unrelated data.
 */
export function joined(pieces: readonly Buffer[], length: number): Buffer {
  const whole = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const piece of pieces) at += piece.copy(whole, at);
  return whole;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** kube-apiserver refuses deeper nesting (apimachinery `pkg/runtime/serializer/json`, maxDepth), as `wasm/json.wasm.ts` does. */
const depthLimit = 10_000;

/** The bytes in place of an event are not JSON. */
export class NotJson extends Error {
  override readonly name = "NotJson";
}

type ExpectedToken = "value" | "value or ]" | "key" | "key or }" | "colon" | "comma or end";

/**
 * Follows a JSON value over any number of pieces to its last byte. It checks only the order of brackets, strings and separators:
 * a value that was cut off breaks that order as soon as another follows. The complete value still has to be scanned.
 */
class PartialValue {
  /** The open containers, outermost first: true for an object. */
  private readonly containers: boolean[] = [];
  private expected: ExpectedToken = "value";
  private inString = false;
  private escaped = false;
  private inScalar = false;

  /** True after the value's first byte and before its last. */
  get isOpen(): boolean {
    return this.containers.length > 0;
  }

  /**
   * Reads from `from` to the end of the value.
   * @returns the index after its last byte; -1 if it does not end in these bytes. Throws NotJson.
   */
  follow(bytes: Buffer, from: number): number {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (this.inString) this.character(byte);
      else if (isSpace(byte)) this.inScalar = false;
      else if (!this.inScalar || !isScalar(byte)) {
        this.inScalar = false;
        this.token(byte);
        if (this.containers.length === 0) return at + 1;
      }
    }
    return -1;
  }

  private character(byte: number): void {
    if (byte < 0x20) throw new NotJson("an event has a line break or another control character in a string");
    if (this.escaped) this.escaped = false;
    else if (byte === backslash) this.escaped = true;
    else if (byte === quote) this.inString = false;
  }

  private token(byte: number): void {
    const { expected } = this;
    const isKey = expected === "key" || expected === "key or }";
    if (byte === openBrace) this.open(true);
    else if (byte === openBracket) this.open(false);
    else if (byte === closeBrace) this.close(expected === "comma or end" || expected === "key or }", true);
    else if (byte === closeBracket) this.close(expected === "comma or end" || expected === "value or ]", false);
    else if (byte === comma) this.step(expected === "comma or end", this.containers.at(-1) ? "key" : "value");
    else if (byte === colon) this.step(expected === "colon", "value");
    else {
      this.inString = byte === quote;
      this.inScalar = !this.inString;
      const isExpected = this.inString ? isKey || this.expectsValue : isScalar(byte) && this.expectsValue;
      this.step(isExpected, isKey ? "colon" : "comma or end");
    }
  }

  private get expectsValue(): boolean {
    return this.expected === "value" || this.expected === "value or ]";
  }

  private open(isObject: boolean): void {
    this.step(this.expectsValue && this.containers.length < depthLimit, isObject ? "key or }" : "value or ]");
    this.containers.push(isObject);
  }

  private close(isExpected: boolean, isObject: boolean): void {
    this.step(isExpected && this.containers.at(-1) === isObject, "comma or end");
    this.containers.pop();
    if (this.containers.length === 0) this.expected = "value";
  }

  private step(isExpected: boolean, next: ExpectedToken): void {
    if (!isExpected) throw new NotJson("an event is cut off, or is not JSON");
    this.expected = next;
  }
}

/** Whether the byte may be part of a number, `true`, `false` or `null`. */
function isScalar(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    (byte >= 0x2b && byte <= 0x2e && byte !== comma) ||
    byte === 0x45
  );
}

/** Longest time slice for one answer's chunks, in milliseconds. */
const turnMs = 10;

/** Yields to the event loop while a long answer, or a burst of events, is read chunk by chunk. */
export class TimeSlice {
  private readonly clock: Clock;
  private began: number;

  constructor(clock: Clock) {
    this.clock = clock;
    this.began = clock.monotonic();
  }

  /** Check it after each chunk. */
  get isOver(): boolean {
    return this.clock.monotonic() - this.began >= turnMs;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.began = this.clock.monotonic();
  }
}
