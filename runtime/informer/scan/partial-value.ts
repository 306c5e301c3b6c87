import { isSpace, openBrace } from "./white-space.ts";

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const closeBrace = 0x7d;

/** kube-apiserver refuses deeper nesting (apimachinery `pkg/runtime/serializer/json`, maxDepth), as `wasm/json.wasm.ts` does. */
const depthLimit = 10_000;

/** What stands where an event should stand is not JSON. */
export class NotJson extends Error {
  override readonly name = "NotJson";
}

type ExpectedToken = "value" | "value or ]" | "key" | "key or }" | "colon" | "comma or end";

/**
 * Follows a JSON value over any number of pieces to its last byte. It checks the order of brackets, strings and separators
 * alone: a value that was cut off breaks that order as soon as another follows. The whole value has to be scanned.
 */
export class PartialValue {
  /** The containers that are open, outermost first: true for an object. */
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
   * @returns the index after its last byte; -1 where it does not end in these bytes. Throws NotJson.
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
