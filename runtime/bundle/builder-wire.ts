import type { Writable } from "node:stream";
import type { WatchfireError } from "../base/errors.ts";
import type { Root } from "./sources.ts";

// Protocol between the runtime and its builder: frames of a length (uint32, little endian) and as many bytes. A request is one
// frame of JSON. The builder's first frame is empty; each answer is three frames: a head of JSON, the script, its source map.

/** A request for a build. */
export interface BuildRequest {
  /** The functions folder as users name it, absolute. */
  readonly folder: string;
  /** Its real path. */
  readonly realFolder: string;
  /** Folders that may be read. */
  readonly roots: readonly Root[];
  /** Folder from which the runtime's own packages are found. */
  readonly ownFolder: string;
  /** Absolute path. */
  readonly handler: string;
  /** Locations of errors are relative to this folder. */
  readonly workingFolder: string;
}

/** Serialises a fault. */
export function packFault({ code, detail: { what, place, hint } }: WatchfireError) {
  return { code, what, ...(place && { place }), ...(hint !== undefined && { hint }) };
}

/** Head of an answer. */
export type AnswerHead =
  | { readonly type: "built"; readonly inputs: readonly string[] }
  | { readonly type: "refused"; readonly faults: readonly ReturnType<typeof packFault>[] };

/** Writes a frame for each payload, all in one write, because each write may wake the other process. */
export function writeFrames(stream: Writable, ...payloads: readonly Uint8Array[]): void {
  stream.cork();
  for (const payload of payloads) {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(payload.length);
    stream.write(length);
    stream.write(payload);
  }
  stream.uncork();
}

/** Assembles frames from a stream's chunks. */
export class BuildFrameReader {
  private readonly limit: (index: number) => number;
  private readonly heard: (frame: Buffer, index: number) => void;
  private readonly chunks: Buffer[] = [];
  private bytes = 0;
  private index = 0;
  private expected: number | undefined;

  /** `limit`: returns the most bytes of the frame with this index, counted from 0. */
  constructor(limit: (index: number) => number, heard: (frame: Buffer, index: number) => void) {
    this.limit = limit;
    this.heard = heard;
  }

  /** @throws RangeError for a frame beyond its limit */
  push(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.bytes += chunk.length;
    for (;;) {
      if (this.expected === undefined) {
        if (this.bytes < 4) return;
        this.expected = this.take(4).readUInt32LE();
        if (this.expected > this.limit(this.index)) throw new RangeError(`a frame of ${this.expected} bytes`);
      }
      if (this.bytes < this.expected) return;
      const frame = this.take(this.expected);
      this.expected = undefined;
      this.heard(frame, this.index++);
    }
  }

  private take(count: number): Buffer {
    const first = this.chunks[0];
    const all = this.chunks.length === 1 && first ? first : Buffer.concat(this.chunks);
    this.chunks.length = 0;
    if (all.length > count) this.chunks.push(all.subarray(count));
    this.bytes = all.length - count;
    return all.subarray(0, count);
  }
}
