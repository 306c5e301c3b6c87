import { promisify } from "node:util";
import { zstdCompress, zstdCompressSync, zstdDecompress } from "node:zlib";

/** Maximum decompressed size. More would not fit into a runtime's memory. */
const plainLimit = 512 * 1024 * 1024;

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** Entries up to this size are compressed on the event loop, in 50 us. A thread pool takes longer, and varies. */
const smallBytes = 16 * 1024;

export async function pack(entry: Buffer): Promise<Buffer> {
  return entry.length <= smallBytes ? zstdCompressSync(entry) : compress(entry);
}

export const unpack = (bytes: Buffer): Promise<Buffer> => decompress(bytes, { maxOutputLength: plainLimit });

/** Returns the compressed entry after its length, so that entries can be concatenated. */
export async function frame(entry: Buffer): Promise<Buffer> {
  const packed = await pack(entry);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(packed.length);
  return Buffer.concat([size, packed]);
}

/** Splits concatenated frames into their compressed entries. */
export function* framesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const size = bytes.readUInt32BE(at);
    yield bytes.subarray(at + 4, at + 4 + size);
    at += 4 + size;
  }
}
