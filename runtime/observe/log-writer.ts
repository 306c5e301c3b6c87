import { type DestinationStream, symbols } from "pino";
import type { Clock, Timer } from "../base/clock.ts";

const mebi = 2 ** 20;

/** Bytes that may wait for the reader when a line comes: the lines of handlers' runs go first, the runtime's warnings and errors last. */
const limits = { run: 6 * mebi, own: 7 * mebi, alarm: 8 * mebi } as const;
/** Pino's number of the level `warn`. */
const warn = 40;

/** PIPE_BUF on Linux: a pipe takes so many bytes whole or not at all. Lines go out in pieces of whole lines up to this, so a process that is killed tears no line that fits. */
const pieceBytes = 4096;
/** Pieces written in one turn of the event loop: a reader as fast as this process does not keep it. */
const piecesAtOnce = 256;

/** Milliseconds until a full pipe is tried again: double after each try in vain. A pipe of 64 KiB that is emptied each time takes 64 MB/s at the first. */
const retryMs = { first: 1, last: 50 } as const;
/** Milliseconds after which a write is tried again that failed, as on a full disk or where nobody reads. */
const faultMs = 1000;
/** Milliseconds between two words about dropped lines, while the reader does not catch up. */
const wordMs = 10_000;
/** Milliseconds of one sleep while the end waits for the reader. */
const napMs = 5;

/** Writes the first bytes of some, and says how many; 0: none for now. Never waits. Throws where writing fails. */
export type LogOutput = (bytes: Buffer) => number;

/**
 * Told of each line that was not written: its function, empty for the runtime's own, and the reason. `rate` is over the
 * function's rate; `reader` says that the log's reader is too slow.
 */
export type LineDropped = (functionName: string, reason: "rate" | "reader") => void;

/**
 * The log's way out of the process, which never waits for a reader. Lines that the output does not take at once wait,
 * up to 8 MiB. Beyond that lines are dropped whole, counted, and said of once there is room. Pino hands each line's
 * fields over beside it.
 */
export class LogWriter implements DestinationStream {
  /** Has pino set the two below before each line. */
  readonly [symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  lastObj: unknown;
  /** Counts what is dropped. */
  heardBy: LineDropped | undefined;
  private readonly output: LogOutput;
  private readonly clock: Clock;
  /** Pieces, the first of them perhaps in part written. */
  private readonly pieces: Buffer[] = [];
  private tail = "";
  private tailBytes = 0;
  private waitingBytes = 0;
  private untold = 0;
  private toldAt = Number.NEGATIVE_INFINITY;
  private timer: Timer | undefined;
  private delayMs: number = retryMs.first;

  constructor(output: LogOutput, clock: Clock) {
    this.output = output;
    this.clock = clock;
  }

  /** Takes one line with its end. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.untold > 0 && this.clock.monotonic() - this.toldAt >= wordMs) this.tell(limits.alarm);
    const { run, function: name } = (this.lastObj ?? {}) as { readonly run?: unknown; readonly function?: unknown };
    const kind = run !== undefined ? "run" : this.lastLevel >= warn ? "alarm" : "own";
    if (this.waitingBytes + bytes > limits[kind]) {
      this.untold++;
      this.heardBy?.(typeof name === "string" ? name : "", "reader");
      return;
    }
    this.add(line, bytes);
    if (!this.timer) this.pump();
  }

  /** Writes what waits, and stops this thread meanwhile, for at most `limitMs`: for the process's end. */
  flush(limitMs: number): void {
    this.tell(Number.POSITIVE_INFINITY);
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

  /** Says how many lines are missing, unless more than `limit` bytes would wait then. */
  private tell(limit: number): void {
    if (this.untold === 0) return;
    const time = new Date(this.clock.now()).toISOString();
    const msg = "lines of the log were dropped, since its reader is too slow";
    const line = `${JSON.stringify({ level: "warn", time, lines: this.untold, msg })}\n`;
    const bytes = Buffer.byteLength(line);
    if (this.waitingBytes + bytes > limit) return;
    this.untold = 0;
    this.toldAt = this.clock.monotonic();
    this.add(line, bytes);
  }

  private pump(): void {
    this.timer = undefined;
    const before = this.waitingBytes;
    const reached = this.advance();
    // The reader has caught up: it learns what it missed.
    if (reached === "empty" && this.untold > 0) {
      this.tell(limits.alarm);
      this.pump();
      return;
    }
    if (reached === "empty") return;
    this.delayMs = this.waitingBytes < before ? retryMs.first : Math.min(2 * this.delayMs, retryMs.last);
    this.timer = this.clock.after(reached === "fault" ? faultMs : this.delayMs, () => this.pump(), { unref: true });
  }

  /** Writes some of what waits. `full`: there is more, for which the output has no room now. */
  private advance(): "empty" | "full" | "fault" {
    for (let count = 0; count < piecesAtOnce; count++) {
      if (this.pieces.length === 0) this.seal();
      const [piece] = this.pieces;
      if (!piece) return "empty";
      let taken: number;
      try {
        taken = this.output(piece);
      } catch {
        return "fault"; // there is nowhere to tell of it
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
