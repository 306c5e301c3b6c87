/** Copies of bodies. All holders of one body share one copy. */
const copies = new WeakMap<Buffer, Buffer>();

/**
 * Size from which on a body is large, in bytes: several holders share one instead of copying it. A copy of so many bytes takes
 * longer than everything else that is done for an event.
 */
export const largeBytes = 64 * 1024;

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
