import { z } from "zod";
import { joined, OversizeValue, piecesLimit, valueLimit } from "./value-reader.ts";

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

/** Limit of a list's text outside its items: kind, apiVersion and metadata take a few hundred bytes. */
const envelopeLimit = 1024 * 1024;

/** The body of a list is not what an API server sends. */
export class BadList extends Error {
  override readonly name = "BadList";
}

/** Servers that are not written in Go send null for absent values. */
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? "");

const envelopeSchema = z.looseObject({
  kind: text,
  apiVersion: text,
  metadata: z.looseObject({ resourceVersion: text, continue: text }).nullish(),
  items: z.array(z.unknown()).length(0).nullish(),
});

/** A page of a list without its items. */
export interface ListEnvelope {
  readonly kind: string;
  readonly apiVersion: string;
  /** "" if absent. */
  readonly resourceVersion: string;
  /** "" on the last page. */
  readonly continueToken: string;
}

/**
 * Cuts the items out of a list's body as it arrives, so that neither the list nor a page is ever one string or one buffer. Only
 * brackets and strings are followed here; the receiver of an item checks it. The text outside the items (a few hundred bytes) is
 * kept, and parsed when the body has ended.
 */
export class ListSplitter {
  private readonly envelope: Buffer[] = [];
  private envelopeLength = 0;
  private pieces: Buffer[] = [];
  private piecesLength = 0;
  private depth = 0;
  private inString = false;
  private escaped = false;
  /** True inside the top-level array `items`. */
  private inItems = false;
  private seenItems = false;
  /** Token expected between items. */
  private expect: "itemOrEnd" | "item" | "commaOrEnd" = "itemOrEnd";
  /** True if the next byte is an item's first brace, which `depth` already counts. */
  private opening = false;

  /** Calls `item(bytes, start, end)` for each item that ends in `chunk`. Throws BadList or OversizeValue. */
  push(chunk: Buffer, item: (bytes: Buffer, start: number, end: number) => void): void {
    let at = 0;
    while (at < chunk.length) {
      if (!this.inItems) at = this.outside(chunk, at);
      else if (this.depth === 2) at = this.between(chunk, at);
      else at = this.inside(chunk, at, item);
    }
  }

  /** Returns the page's envelope once the body has ended. Throws BadList for a body that was cut short. */
  end(): ListEnvelope {
    const text = Buffer.concat(this.envelope).toString("utf8");
    let document: unknown;
    try {
      document = JSON.parse(text);
    } catch {
      throw new BadList("the list is cut short or not JSON");
    }
    const parsed = envelopeSchema.safeParse(document);
    if (!parsed.success) throw new BadList(`the list is not well formed: ${z.prettifyError(parsed.error)}`);
    const { kind, apiVersion, metadata } = parsed.data;
    return {
      kind,
      apiVersion,
      resourceVersion: metadata?.resourceVersion ?? "",
      continueToken: metadata?.continue ?? "",
    };
  }

  /** Copies up to and including the bracket that opens `items`. */
  private outside(chunk: Buffer, from: number): number {
    let at = from;
    for (; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (this.inString) {
        this.step(byte);
      } else if (byte === quote) {
        this.inString = true;
      } else if (byte === 0x7b || byte === 0x5b) {
        this.depth++;
        if (byte === 0x5b && this.depth === 2) {
          this.keep(chunk.subarray(from, at + 1));
          this.inItems = this.opensItems();
          return at + 1;
        }
      } else if (byte === 0x7d || byte === 0x5d) {
        this.depth--;
      }
    }
    this.keep(chunk.subarray(from, at));
    return at;
  }

  private between(chunk: Buffer, from: number): number {
    let at = from;
    for (; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue;
      if (byte === 0x5d && this.expect !== "item") {
        this.inItems = false;
        this.depth = 1;
        this.keep(chunk.subarray(at, at + 1));
        return at + 1;
      }
      if (byte === comma && this.expect === "commaOrEnd") {
        this.expect = "item";
        continue;
      }
      if (byte !== 0x7b || this.expect === "commaOrEnd") throw new BadList("the list has something other than objects");
      this.depth = 3;
      this.expect = "commaOrEnd";
      this.opening = true;
      return at;
    }
    return at;
  }

  private inside(chunk: Buffer, from: number, item: (bytes: Buffer, start: number, end: number) => void): number {
    let at = this.opening ? from + 1 : from;
    this.opening = false;
    let { depth, inString } = this;
    for (; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (inString) {
        if (this.escaped) this.escaped = false;
        else if (byte === backslash) this.escaped = true;
        else if (byte === quote) inString = false;
      } else if (byte === quote) {
        inString = true;
      } else if (byte === 0x7b || byte === 0x5b) {
        depth++;
      } else if ((byte === 0x7d || byte === 0x5d) && --depth === 2) {
        this.depth = depth;
        this.inString = false;
        this.finish(chunk, from, at + 1, item);
        return at + 1;
      }
    }
    this.depth = depth;
    this.inString = inString;
    this.piecesLength += chunk.length - from;
    if (this.piecesLength > valueLimit) throw new OversizeValue(valueLimit);
    this.pieces.push(chunk.subarray(from));
    if (this.pieces.length >= piecesLimit) this.pieces = [joined(this.pieces, this.piecesLength)];
    return at;
  }

  private finish(
    chunk: Buffer,
    from: number,
    end: number,
    item: (bytes: Buffer, start: number, end: number) => void,
  ): void {
    if (this.pieces.length === 0) {
      item(chunk, from, end);
      return;
    }
    const length = this.piecesLength + end - from;
    if (length > valueLimit) throw new OversizeValue(valueLimit);
    this.pieces.push(chunk.subarray(from, end));
    const whole = joined(this.pieces, length);
    this.pieces = [];
    this.piecesLength = 0;
    item(whole, 0, length);
  }

  private step(byte: number): void {
    if (this.escaped) this.escaped = false;
    else if (byte === backslash) this.escaped = true;
    else if (byte === quote) this.inString = false;
  }

  private keep(bytes: Buffer): void {
    this.envelopeLength += bytes.length;
    if (this.envelopeLength > envelopeLimit) throw new BadList("the list has too much text outside of its items");
    this.envelope.push(Buffer.from(bytes));
  }

  /** Whether the bracket just kept opens the list's own `items`, which may appear only once. */
  private opensItems(): boolean {
    const tail = Buffer.concat(this.envelope).toString("latin1");
    if (!/"items"\s*:\s*\[$/.test(tail)) return false;
    if (this.seenItems) throw new BadList("the list has items twice");
    this.seenItems = true;
    return true;
  }
}
