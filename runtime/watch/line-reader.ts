const newline = 0x0a;

/** A line grew past the limit: an object that large is no object of Kubernetes, and keeping it would take the heap. */
export class OversizeLine extends Error {
  override readonly name = "OversizeLine";
  readonly limit: number;

  constructor(limit: number) {
    super(`a line is longer than ${limit} bytes`);
    this.limit = limit;
  }
}

/** etcd's default limit of an object is 1.5 MiB; ten times that is neither reached by accident nor a danger to the heap. */
export const lineLimit = 16 * 1024 * 1024;

/** A stream that trickles must not make us hold an object per byte; at a socket's usual 64 KiB the line limit comes first. */
export const piecesLimit = 256;

/**
 * Cuts a byte stream into lines at 0x0A alone: U+2028 and U+2029 stand inside JSON strings, where `readline` would
 * split. A line within one chunk is handed out in place; only one that spans chunks is copied, once. What follows
 * the last newline when a stream ends is half a line, and is never handed out.
 */
export class LineReader {
  private readonly limit: number;
  private tail: Buffer[] = [];
  private tailLength = 0;

  constructor(limit = lineLimit) {
    this.limit = limit;
  }

  /** Bytes held of a line that has not ended. */
  get pending(): number {
    return this.tailLength;
  }

  /**
   * Calls `line(bytes, start, end)` for each line that ends in `chunk`; `start` is inclusive, `end` is the newline.
   * It stops early when `line` returns false. Throws OversizeLine.
   */
  push(chunk: Buffer, line: (bytes: Buffer, start: number, end: number) => boolean): void {
    let start = 0;
    let end = chunk.indexOf(newline);
    while (end >= 0) {
      const length = this.tailLength + end - start;
      if (length > this.limit) throw new OversizeLine(this.limit);
      if (this.tailLength === 0) {
        if (length > 0 && !line(chunk, start, end)) return;
      } else {
        this.tail.push(chunk.subarray(start, end));
        const whole = joined(this.tail, length);
        this.tail = [];
        this.tailLength = 0;
        if (!line(whole, 0, length)) return;
      }
      start = end + 1;
      end = chunk.indexOf(newline, start);
    }
    if (start === chunk.length) return;
    this.tailLength += chunk.length - start;
    if (this.tailLength > this.limit) throw new OversizeLine(this.limit);
    this.tail.push(chunk.subarray(start));
    if (this.tail.length >= piecesLimit) this.tail = [joined(this.tail, this.tailLength)];
  }
}

/** In memory of its own: who keeps it keeps no slab of Node's pool, which has other things as well. */
export function joined(pieces: readonly Buffer[], length: number): Buffer {
  const whole = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const piece of pieces) at += piece.copy(whole, at);
  return whole;
}
