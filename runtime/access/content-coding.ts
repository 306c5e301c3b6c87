import { pipeline, Readable, type Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";

/** Maximum number of nested codings, as in undici's fetch. */
const mostCodings = 5;

/** Bits of zstd's window: the maximum for HTTP (RFC 9659, section 3), 8 MiB of memory. */
const zstdWindowBits = 23;

/** Creates a decoder. `first`: the first chunk of its input. */
type MakeDecoder = (first: Buffer) => Transform;

/**
 * By the standard `deflate` is zlib's format, but some servers send raw deflate. The first byte of zlib's format distinguishes
 * them.
 */
const inflate: MakeDecoder = (first) => (((first[0] as number) & 0x0f) === 0x08 ? createInflate() : createInflateRaw());

const decoders: ReadonlyMap<string, MakeDecoder> = new Map<string, MakeDecoder>([
  ["gzip", () => createGunzip()],
  ["x-gzip", () => createGunzip()],
  ["deflate", inflate],
  ["br", () => createBrotliDecompress()],
  ["zstd", () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowBits } })],
]);

/** The error for a body that cannot be decoded. */
export class BadCoding extends Error {
  override readonly name = "BadCoding";
}

/**
 * Returns the Accept-Encoding of a request, as in undici's fetch. Without TLS, proxies that read along may not support more
 * codings.
 */
export const acceptEncoding = (protocol: string): string =>
  protocol === "https:" ? "br, gzip, deflate, zstd" : "gzip, deflate";

/**
 * Returns the codings in a Content-Encoding header, in the order in which they were applied. Empty if one of them is unknown: the
 * body is then not decoded, as in undici's fetch. Throws BadCoding for more than five.
 */
export function codingsOf(header: string | readonly string[] | undefined): readonly string[] {
  const text = String(header ?? "").toLowerCase();
  const codings = text === "" ? [] : text.split(",").map((coding) => coding.trim());
  if (codings.length > mostCodings) throw new BadCoding(`it has ${codings.length} codings, more than ${mostCodings}`);
  return codings.every((coding) => decoders.has(coding)) ? codings : [];
}

/** Limits of decoded data. */
interface DecodingLimit {
  /** Maximum bytes of input, and between two codings. Without a limit a few bytes could keep a core busy. */
  readonly limit: number;
  /** Creates the error to throw as soon as the limit is exceeded. */
  readonly tooLarge: () => Error;
}

/**
 * Returns the body with these codings removed. Reading it rejects with BadCoding if it is damaged or truncated, or with the
 * body's error. An empty body is empty in any coding.
 */
export function decoded(body: Readable, codings: readonly string[], limit: DecodingLimit): Readable {
  return codings.reduceRight((from, coding) => Readable.from(decode(from, coding, limit), { objectMode: false }), body);
}

async function* decode(body: Readable, coding: string, { limit, tooLarge }: DecodingLimit): AsyncGenerator<Buffer> {
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let failure: unknown;
  let size = 0;
  const read = async (): Promise<Buffer | undefined> => {
    try {
      const { done, value } = await chunks.next();
      if (done) return undefined;
      size += value.length;
      if (size > limit) throw tooLarge();
      return value;
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  try {
    let first = await read();
    while (first?.length === 0) first = await read();
    const make = decoders.get(coding);
    if (!first || !make) return;
    const decoder = make(first);
    async function* input() {
      for (let chunk = first; chunk; chunk = await read()) yield chunk;
    }
    // Errors reach the reader of the decoder.
    pipeline(input, decoder, () => {});
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw new BadCoding(`it is not whole ${coding}: ${(error as NodeJS.ErrnoException).code ?? "no code"}`);
  } finally {
    body.on("error", () => {}).destroy();
  }
}
