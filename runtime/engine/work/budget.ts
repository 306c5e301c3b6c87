import { getHeapStatistics } from "node:v8";
import { apart } from "../../v8/own-copy.ts";

/** A quarter of the heap's limit, in bytes: what the queues of all functions together may hold in memory. */
export const heapQuarter = (): number => getHeapStatistics().heap_size_limit / 4;

/**
 * Bytes that all functions together may hold, in memory or on disk. Where it is spent, those that hold more than their
 * share of it take no more. One that holds little is not made to pay for them: in all it is never twice the budget.
 */
export class Budget {
  private readonly limit: () => number;
  private used = 0;
  private holders = 0;

  /** @param limit in bytes; asked each time, since a disk fills and empties. */
  constructor(limit: () => number) {
    this.limit = limit;
  }

  /** One more function, or with -1 one less, shares it. */
  share(holders: 1 | -1): void {
    this.holders += holders;
  }

  /** Bytes came, or went where negative. */
  hold(bytes: number): void {
    this.used += bytes;
  }

  /** Whether one that holds `own` bytes should take no more. */
  isSpent(own: number): boolean {
    return this.used >= this.limit() && own >= this.fairShare;
  }

  /** Whether one that holds `own` bytes has more than such a part of its share, and all together as large a part of the budget. */
  isShort(own: number, part: number): boolean {
    return this.used >= part * this.limit() && own >= part * this.fairShare;
  }

  /** What each may hold where the budget is spent, in bytes. */
  get fairShare(): number {
    return this.limit() / Math.max(1, this.holders);
  }
}

/** Memory that bodies are parts of, while any of them is held. */
export interface Chunk {
  readonly bytes: number;
  holders: number;
}

/** Chunks of a socket, 16 to 64 KiB each, that a function's waiting events may keep alive, in bytes. */
const mostBytes = 4 * 1024 * 1024;

/** An event's body, and the chunk that it keeps alive. */
interface PinnedBody {
  body: Buffer | undefined;
  chunk: Chunk | undefined;
}

/**
 * The chunks of memory that a function's waiting events keep alive by their bodies. Events that follow each other share one, so
 * that a queue takes no more than it holds. Where few of many events wait, each may keep a chunk for itself. Then bodies are
 * copied out, which costs 2 us.
 */
export class BufferPins {
  private bytes = 0;
  private last: { readonly buffer: ArrayBufferLike; readonly chunk: Chunk } | undefined;

  /** The event waits. Its body is in memory of its own from now on where chunks take too much. */
  hold(event: PinnedBody): void {
    const { body } = event;
    if (!body) return;
    const chunk = this.chunkOf(body.buffer);
    if (chunk) {
      if (chunk.holders++ === 0) this.bytes += chunk.bytes;
      event.chunk = chunk;
    } else event.body = apart(body);
  }

  /** The event waits no more, or without its body. */
  release(event: PinnedBody): void {
    const { chunk } = event;
    event.chunk = undefined;
    if (!chunk || --chunk.holders > 0) return;
    this.bytes -= chunk.bytes;
    // A function without events is to keep none.
    if (this.last?.chunk === chunk) this.last = undefined;
  }

  /** Undefined where there is no room for another. */
  private chunkOf(buffer: ArrayBufferLike): Chunk | undefined {
    const { last } = this;
    if (last?.buffer === buffer) return last.chunk;
    const { byteLength } = buffer;
    if (this.bytes + byteLength > mostBytes) return undefined;
    const chunk = { bytes: byteLength, holders: 0 };
    this.last = { buffer, chunk };
    return chunk;
  }
}
