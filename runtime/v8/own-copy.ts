/** Of bodies that were copied out: all who keep one keep the same copy. */
const copies = new WeakMap<Buffer, Buffer>();

/** So much of the memory that a body keeps alive may be something else's, such as the managed fields that it came with. */
const mostBeside = 1 / 8;

/** The body in memory of its own, where it would keep more alive than itself. One copy for all who ask. */
export function apart(body: Buffer): Buffer {
  if (body.length >= body.buffer.byteLength * (1 - mostBeside)) return body;
  const known = copies.get(body);
  if (known) return known;
  const copy = Buffer.allocUnsafeSlow(body.length);
  body.copy(copy);
  copies.set(body, copy);
  return copy;
}
