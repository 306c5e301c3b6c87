import { pipeline, Readable, type Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";

/** As many, one over the other, as undici's fetch takes. */
const mostCodings = 5;

/** Bits of zstd's window: the most that a sender may use with HTTP (RFC 9659, section 3), 8 MiB of memory. */
const zstdWindowBits = 23;

/** Makes a coding's decoder, by the first chunk of what it is to decode. */
type MakeDecoder = (first: Buffer) => Transform;

/** `deflate` is zlib's format by the standard; some servers send the bare one, which zlib's first byte tells apart. */
const inflate: MakeDecoder = (first) => (((first[0] as number) & 0x0f) === 0x08 ? createInflate() : createInflateRaw());

const decoders: ReadonlyMap<string, MakeDecoder> = new Map<string, MakeDecoder>([
  ["gzip", () => createGunzip()],
  ["x-gzip", () => createGunzip()],
  ["deflate", inflate],
  ["br", () => createBrotliDecompress()],
  ["zstd", () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowBits } })],
]);

/** A body cannot be decoded. */
export class BadCoding extends Error {
  override readonly name = "BadCoding";
}

/** What a request says that it takes, as undici's fetch does: proxies in between may not know more where they read along. */
export const acceptEncoding = (protocol: string): string =>
  protocol === "https:" ? "br, gzip, deflate, zstd" : "gzip, deflate";

/**
 * The codings that a Content-Encoding header names, in the order in which they were applied. Empty where one of them is
 * not known here: the body is left as it is then, as by undici's fetch. Throws BadCoding for more than five.
 */
export function codingsOf(header: string | readonly string[] | undefined): readonly string[] {
  const text = String(header ?? "").toLowerCase();
  const codings = text === "" ? [] : text.split(",").map((coding) => coding.trim());
  if (codings.length > mostCodings) throw new BadCoding(`it has ${codings.length} codings, more than ${mostCodings}`);
  return codings.every((coding) => decoders.has(coding)) ? codings : [];
}

/** Limits of what is decoded. */
interface DecodingLimit {
  /** Bytes at most that come in, and that go from one coding to the next: else a few bytes could keep a core busy. */
  readonly limit: number;
  /** What is thrown as soon as there are more. */
  readonly tooLarge: () => Error;
}

/**
 * The body without these codings. Reading it rejects with BadCoding where it is damaged or cut short, or with what the body
 * rejects with. An empty body is empty in any coding.
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
    // An error reaches whoever reads the decoder.
    pipeline(input, decoder, () => {});
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw new BadCoding(`it is not whole ${coding}: ${(error as NodeJS.ErrnoException).code ?? "no code"}`);
  } finally {
    body.on("error", () => {}).destroy();
  }
}
