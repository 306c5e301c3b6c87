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

/**
 * Returns the weight of `name` at `place` for rendezvous hashing: 32 bits, the same everywhere, and practically random for each
 * pair. FNV-1a over both, followed by murmur3's finalizer, since FNV alone hardly distinguishes names with the same ending.
 */
export const drawn = (name: string, place: string | number): number => scattered(`${place}\0${name}`);

/** Returns the index of a function's shard for a key (`namespace/name`). */
export const shardOf = (key: string, shards: number): number => scattered(key) % shards;

/**
 * Returns the index of a function's shard for a namespace. It is computed from the hash that API servers use (KEP-5866), so a
 * server that leaves out a namespace by its hash leaves out no namespace of another shard. That hash alone maps `tenant-00` to
 * `tenant-99` to adjacent values.
 */
export function shardOfNamespace(namespace: string, shards: number): number {
  const { high, low } = namespaceHash(namespace);
  return finished(high ^ finished(low)) % shards;
}

/** Returns 32 practically random bits that are the same everywhere. */
function scattered(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return finished(hash);
}

/** Murmur3's finalizer: each bit of the result depends on each bit of the input. */
function finished(bits: number): number {
  let hash = bits;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Returns the slot of a function: the one with the highest weight, so that it does not depend on other functions. */
export function slotOf(name: string, slots: number): number {
  let [best, most] = [0, -1];
  for (let slot = 0; slot < slots; slot++) {
    const pull = drawn(name, slot);
    if (pull > most) [best, most] = [slot, pull];
  }
  return best;
}

/**
 * Returns the slots of a function's shards, in the order of the shards: those with the highest weights. All differ, and the first
 * is the slot of the function if it has one shard. At most `slots` of them.
 */
export function slotsOf(name: string, shards: number, slots: number): readonly number[] {
  if (shards === 1) return [slotOf(name, slots)];
  const pulls = Array.from({ length: slots }, (_, slot) => ({ slot, pull: drawn(name, slot) }));
  return pulls
    .sort((a, b) => b.pull - a.pull || a.slot - b.slot)
    .slice(0, shards)
    .map(({ slot }) => slot);
}
