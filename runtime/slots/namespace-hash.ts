/** 64 bits, in two halves. */
interface Hash64 {
  readonly high: number;
  readonly low: number;
}

/**
 * Returns the FNV-1a hash of a namespace's name, as API servers compute it for `shardSelector` (KEP-5866). Names are ASCII. The
 * constants are the algorithm's for 64 bits.
 */
export function namespaceHash(namespace: string): Hash64 {
  let [high, low] = [0xcbf29ce4, 0x84222325];
  for (let at = 0; at < namespace.length; at++) {
    low = (low ^ namespace.charCodeAt(at)) >>> 0;
    // Times 2^40 + 435; bits beyond 64 are dropped.
    const product = low * 435;
    high = (Math.imul(high, 435) + Math.floor(product / 2 ** 32) + (low << 8)) >>> 0;
    low = product >>> 0;
  }
  return { high, low };
}
