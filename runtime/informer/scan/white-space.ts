/** The first byte of every object that an API server sends. */
export const openBrace = 0x7b;

/** Whether the byte is white space between JSON's tokens (RFC 8259, section 2). */
export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The first index from `from` on that holds no white space; the length where there is none. */
export function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && isSpace(bytes[at] as number)) at++;
  return at;
}
