import type { Readable } from "node:stream";
import { CallGate } from "./gate.ts";

/** Bytes from which an answer is read alone among those of its function. */
const largeBytes = 1024 * 1024;
/** Far more than calls that can be under way. */
const mostWaiting = 1000;

/** How one answer is read. */
interface AnswerReadOptions {
  readonly functionName: string;
  /** Bytes at most. */
  readonly limit: number;
  /** What is thrown as soon as there are more. */
  readonly tooLarge: () => Error;
  readonly signal: AbortSignal;
}

/**
 * Reads answers to functions' calls. A function's large answers are read one after another. 16 of 16 MiB at once, each
 * copied some times on its way, would take a gigabyte of the memory that all functions share.
 */
export class AnswerReader {
  private readonly gates = new Map<string, CallGate>();

  /** The whole body, which is read or destroyed then; `use` makes of it what is kept. Rejects with what the body or the signal does. */
  async read<T>(
    body: Readable,
    { functionName, limit, tooLarge, signal }: AnswerReadOptions,
    use: (bytes: Buffer) => T,
  ): Promise<T> {
    const chunks: Buffer[] = [];
    const source = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
    let size = 0;
    /** Gives whether the body is at its end. */
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
