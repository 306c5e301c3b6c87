/** Copies of bodies. All holders of one body share one copy. */
const copies = new WeakMap<Buffer, Buffer>();

/** Share of the memory kept alive by a body that may belong to other data, such as the managed fields that arrived with it. */
const mostBeside = 1 / 8;

/**
 * Returns the body itself if it fills most of its underlying memory, else a copy in separate memory, so that it does not keep the
 * rest alive. All callers get the same copy.
 */
export function apart(body: Buffer): Buffer {
  if (body.length >= body.buffer.byteLength * (1 - mostBeside)) return body;
  const known = copies.get(body);
  if (known) return known;
  const copy = Buffer.allocUnsafeSlow(body.length);
  body.copy(copy);
  copies.set(body, copy);
  return copy;
}
