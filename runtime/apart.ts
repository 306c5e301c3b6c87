/** Of bodies that were copied out: all who keep one keep the same copy. */
const copies = new WeakMap<Buffer, Buffer>();

/** The body in memory of its own, where it is a small part of something larger that it would keep alive. One copy for all who ask. */
export function apart(body: Buffer): Buffer {
  if (body.length * 2 >= body.buffer.byteLength) return body;
  const known = copies.get(body);
  if (known) return known;
  const copy = Buffer.allocUnsafeSlow(body.length);
  body.copy(copy);
  copies.set(body, copy);
  return copy;
}
