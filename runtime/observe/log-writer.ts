import { type DestinationStream, symbols } from "pino";
import type { Clock, Timer } from "../base/clock.ts";

const mebi = 2 ** 20;

/**
 * Maximum bytes waiting for the reader when a line is written. Lines of handlers' runs are dropped first, the runtime's warnings
 * and errors last.
 */
const limits = { run: 6 * mebi, own: 7 * mebi, alarm: 8 * mebi } as const;
/** Pino's number of the level `warn`. */
const warn = 40;

/**
 * PIPE_BUF on Linux: a pipe accepts this many bytes completely or not at all. Lines are written in pieces of whole lines up to
 * this size, so that killing the process does not truncate a line that fits.
 */
const pieceBytes = 4096;
/** Maximum number of pieces written in one turn of the event loop, so that a fast reader does not block the loop. */
const piecesAtOnce = 256;

/**
 * Milliseconds until a full pipe is tried again, doubled after each unsuccessful try. With the first value, a pipe of 64 KiB that
 * is emptied each time takes 64 MB/s.
 */
const retryMs = { first: 1, last: 50 } as const;
/** Milliseconds until a failed write is tried again, for example on a full disk or without a reader. */
const faultMs = 1000;
/** Milliseconds between two reports about dropped lines, while the reader is too slow. */
const wordMs = 10_000;
/** Milliseconds of one sleep while the process' end waits for the reader. */
const napMs = 5;

/**
 * Writes a prefix of the bytes and returns its length; 0 if nothing can be written now. Never blocks. Throws if writing fails.
 */
export type LogOutput = (bytes: Buffer) => number;

/**
 * Called for each line that was not written, with its function (empty for the runtime's own lines) and the reason: `rate` is
 * above the function's rate limit; `reader` means that the log's reader is too slow.
 */
export type LineDropped = (functionName: string, reason: "rate" | "reader") => void;

/**
 * Writes the log without ever waiting for its reader. Lines that the output does not accept at once are buffered, up to 8 MiB.
 * Beyond that, whole lines are dropped and counted, and reported once there is room. Pino passes each line's fields separately.
 */
export class LogWriter implements DestinationStream {
  /** Makes pino set the two fields below before each line. */
  readonly [symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  lastObj: unknown;
  private readonly output: LogOutput;
  private readonly clock: Clock;
  private readonly dropped: LineDropped;
  /** Pieces to write. The first may be partly written. */
  private readonly pieces: Buffer[] = [];
  private tail = "";
  private tailBytes = 0;
  private waitingBytes = 0;
  private unreported = 0;
  private reportedAt = Number.NEGATIVE_INFINITY;
  private timer: Timer | undefined;
  private delayMs: number = retryMs.first;

  constructor(output: LogOutput, clock: Clock, dropped: LineDropped) {
    this.output = output;
    this.clock = clock;
    this.dropped = dropped;
  }

  /** Writes one line, including its line end. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.unreported > 0 && this.clock.monotonic() - this.reportedAt >= wordMs) this.report(limits.alarm);
    const { run, function: name } = (this.lastObj ?? {}) as { readonly run?: unknown; readonly function?: unknown };
    const kind = run !== undefined ? "run" : this.lastLevel >= warn ? "alarm" : "own";
    if (this.waitingBytes + bytes > limits[kind]) {
      this.unreported++;
      this.dropped(typeof name === "string" ? name : "", "reader");
      return;
    }
    this.add(line, bytes);
    if (!this.timer) this.pump();
  }

  /** Writes all buffered lines, blocking this thread for at most `limitMs`. For the process' end. */
  flush(limitMs: number): void {
    this.report(Number.POSITIVE_INFINITY);
    const deadline = this.clock.monotonic() + limitMs;
    const never = new Int32Array(new SharedArrayBuffer(4));
    while (this.advance() === "full" && this.clock.monotonic() < deadline) Atomics.wait(never, 0, 0, napMs);
  }

  private add(line: string, bytes: number): void {
    if (this.tailBytes + bytes > pieceBytes) this.seal();
    this.tail += line;
    this.tailBytes += bytes;
    this.waitingBytes += bytes;
  }

  private seal(): void {
    if (this.tailBytes > 0) this.pieces.push(Buffer.from(this.tail));
    this.tail = "";
    this.tailBytes = 0;
  }

  /** Adds a line about dropped lines, unless more than `limit` bytes would then be waiting. */
  private report(limit: number): void {
    if (this.unreported === 0) return;
    const time = new Date(this.clock.now()).toISOString();
    const msg = "lines of the log were dropped, since its reader is too slow";
    const line = `${JSON.stringify({ level: "warn", time, lines: this.unreported, msg })}\n`;
    const bytes = Buffer.byteLength(line);
    if (this.waitingBytes + bytes > limit) return;
    this.unreported = 0;
    this.reportedAt = this.clock.monotonic();
    this.add(line, bytes);
  }

  private pump(): void {
    this.timer = undefined;
    const before = this.waitingBytes;
    const reached = this.advance();
    // The reader has caught up, so dropped lines are reported now.
    if (reached === "empty" && this.unreported > 0) {
      this.report(limits.alarm);
      this.pump();
      return;
    }
    if (reached === "empty") return;
    this.delayMs = this.waitingBytes < before ? retryMs.first : Math.min(2 * this.delayMs, retryMs.last);
    this.timer = this.clock.after(reached === "fault" ? faultMs : this.delayMs, () => this.pump(), { unref: true });
  }

  /** Writes some of the buffered lines. `full`: more remain, for which the output has no room now. */
  private advance(): "empty" | "full" | "fault" {
    for (let count = 0; count < piecesAtOnce; count++) {
      if (this.pieces.length === 0) this.seal();
      const [piece] = this.pieces;
      if (!piece) return "empty";
      let taken: number;
      try {
        taken = this.output(piece);
      } catch {
        return "fault"; // there is no place to report it
      }
      this.waitingBytes -= taken;
      if (taken === piece.length) this.pieces.shift();
      else {
        this.pieces[0] = piece.subarray(taken);
        return "full";
      }
    }
    return "full";
  }
}
