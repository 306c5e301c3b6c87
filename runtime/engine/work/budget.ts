import { getHeapStatistics } from "node:v8";
import { apart, largeBytes } from "../../v8/own-copy.ts";

/** A quarter of the heap's limit, in bytes: the limit on the memory of all functions' queues. */
export const heapQuarter = (): number => getHeapStatistics().heap_size_limit / 4;

/**
 * Limit on the bytes that all functions together hold, in memory or on disk. If it is used up, functions that hold more than
 * their share accept no more. One that holds little is not affected, so the total never exceeds twice the budget.
 */
export class Budget {
  private readonly limit: () => number;
  private used = 0;
  private holders = 0;

  /** @param limit in bytes; read each time, since a disk fills and empties */
  constructor(limit: () => number) {
    this.limit = limit;
  }

  /** Adds a function to those that share it, or removes one (-1). */
  share(holders: 1 | -1): void {
    this.holders += holders;
  }

  /** Adds bytes; a negative number releases them. */
  hold(bytes: number): void {
    this.used += bytes;
  }

  /** Whether a function that holds `own` bytes should accept no more. */
  isSpent(own: number): boolean {
    return this.used >= this.limit() && own >= this.fairShare;
  }

  /** Whether a function that holds `own` bytes exceeds that part of its share, and all together that part of the budget. */
  isShort(own: number, part: number): boolean {
    return this.used >= part * this.limit() && own >= part * this.fairShare;
  }

  /** The bytes that each function may hold if the budget is used up. */
  get fairShare(): number {
    return this.limit() / Math.max(1, this.holders);
  }
}

/** A network buffer that bodies are parts of, or a large body, while any event holds it. */
export interface Chunk {
  readonly bytes: number;
  holders: number;
  /** The large body. */
  readonly large?: Buffer;
}

/** Limit on the socket buffers, of 16 to 64 KiB each, that a function's waiting events keep alive, in bytes. */
const mostBytes = 4 * 1024 * 1024;

/** An event's body, and the buffer that it keeps alive. */
interface PinnedBody {
  readonly size: number;
  body: Buffer | undefined;
  chunk: Chunk | undefined;
}

/**
 * Limits the network buffers that a function's waiting events keep alive by their bodies. Consecutive events share one, so a
 * queue takes no more than it holds. If few of many events wait, each may keep a buffer to itself. Then bodies are copied, which
 * costs 2 us. A large body is in memory once, and counts once, however many of the function's triggers receive it.
 */
export class BufferPins {
  private bytes = 0;
  private readonly large = new Map<Buffer, Chunk>();
  private last: { readonly buffer: ArrayBufferLike; readonly chunk: Chunk } | undefined;

  /** Records that the event waits. Copies its body if the buffers take too much. Returns the bytes that the queue grows by. */
  hold(event: PinnedBody): number {
    const { body, size } = event;
    if (!body) return size;
    if (body.length >= largeBytes) return this.holdLarge(event, body);
    const chunk = this.chunkOf(body.buffer);
    if (chunk) {
      if (chunk.holders++ === 0) this.bytes += chunk.bytes;
      event.chunk = chunk;
    } else event.body = apart(body);
    return size;
  }

  private holdLarge(event: PinnedBody, body: Buffer): number {
    const large = apart(body);
    const held = this.large.get(large);
    const chunk = held ?? { bytes: event.size, holders: 0, large };
    chunk.holders++;
    event.body = large;
    event.chunk = chunk;
    if (held) return 0;
    this.large.set(large, chunk);
    return chunk.bytes;
  }

  /** Records that the event no longer waits, or waits without its body. Returns the bytes that the queue shrinks by. */
  release(event: PinnedBody): number {
    const { chunk, size } = event;
    event.chunk = undefined;
    const isLast = chunk !== undefined && --chunk.holders === 0;
    if (chunk?.large) {
      if (!isLast) return 0;
      this.large.delete(chunk.large);
      return chunk.bytes;
    }
    if (!isLast) return size;
    this.bytes -= chunk.bytes;
    // A function without events must not keep a buffer alive.
    if (this.last?.chunk === chunk) this.last = undefined;
    return size;
  }

  /** Returns the buffer's record; `undefined` if there is no room for another. */
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
