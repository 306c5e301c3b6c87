import { apart } from "../../v8/own-copy.ts";

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
