import type { Readable } from "node:stream";
import { CallGate } from "./gate.ts";

/** Answers of at least this size, in bytes, are read one at a time for each function. */
const largeBytes = 1024 * 1024;
/** Far more than the number of concurrent calls. */
const mostWaiting = 1000;

/** Options of one read. */
interface AnswerReadOptions {
  readonly functionName: string;
  /** Maximum size in bytes. */
  readonly limit: number;
  /** Creates the error to throw as soon as the limit is exceeded. */
  readonly tooLarge: () => Error;
  readonly signal: AbortSignal;
}

/**
 * Reads answers to functions' calls. Large answers of a function are read one after another: 16 of 16 MiB at once, each copied a
 * few times, would take a gigabyte of the memory that all functions share.
 */
export class AnswerReader {
  private readonly gates = new Map<string, CallGate>();

  /**
   * Reads the whole body, passes it to `use`, and returns its result. The body is consumed or destroyed. Rejects with the error
   * of the body or the signal.
   */
  async read<T>(
    body: Readable,
    { functionName, limit, tooLarge, signal }: AnswerReadOptions,
    use: (bytes: Buffer) => T,
  ): Promise<T> {
    const chunks: Buffer[] = [];
    const source = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
    let size = 0;
    /** Reads until the body has more than `most` bytes. Returns true if the body has ended. */
    const readPast = async (most: number): Promise<boolean> => {
      while (size <= most) {
        const { done, value } = await source.next();
        if (done) return true;
        size += value.length;
        if (size > limit) throw tooLarge();
        chunks.push(value);
      }
      return false;
    };
    try {
      if (await readPast(largeBytes)) return use(Buffer.concat(chunks, size));
      return await this.alone(functionName, signal, async () => {
        await readPast(limit);
        return use(Buffer.concat(chunks, size));
      });
    } finally {
      body.on("error", () => {}).destroy();
    }
  }

  private async alone<T>(functionName: string, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
    const limits = { atOnce: 1, waiting: mostWaiting, waitingBytes: 0 };
    const gate = this.gates.get(functionName) ?? new CallGate(limits);
    this.gates.set(functionName, gate);
    try {
      return await gate.pass(signal, 0, read);
    } finally {
      if (gate.idle) this.gates.delete(functionName);
    }
  }
}
