import { promisify } from "node:util";
import { zstdCompress, zstdCompressSync, zstdDecompress } from "node:zlib";

/** Nothing decompresses to more: it would not fit into a runtime's memory. */
const plainLimit = 512 * 1024 * 1024;

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** Up to here an entry is packed on the event loop, in 50 us: a thread's turn takes longer and comes at any time. */
const smallBytes = 16 * 1024;

export async function pack(entry: Buffer): Promise<Buffer> {
  return entry.length <= smallBytes ? zstdCompressSync(entry) : compress(entry);
}

export const unpack = (bytes: Buffer): Promise<Buffer> => decompress(bytes, { maxOutputLength: plainLimit });

/** A packed entry with its length before it, so that several can lie one after the other. */
export async function frame(entry: Buffer): Promise<Buffer> {
  const packed = await pack(entry);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(packed.length);
  return Buffer.concat([size, packed]);
}

/** The packed entries of frames that lie one after the other. */
export function* framesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const size = bytes.readUInt32BE(at);
    yield bytes.subarray(at + 4, at + 4 + size);
    at += 4 + size;
  }
}
