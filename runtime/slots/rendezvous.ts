import { namespaceHash } from "./namespace-hash.ts";

/**
 * How much `name` is drawn to `place`, 32 bits: the same everywhere, and for each pair as good as random. FNV-1a over
 * both, and murmur3's finalizer, since FNV alone tells names that end alike hardly apart.
 */
export const drawn = (name: string, place: string | number): number => scattered(`${place}\0${name}`);

/** Which of a function's shards has a key (`namespace/name`), from 0. */
export const shardOf = (key: string, shards: number): number => scattered(key) % shards;

/**
 * Which of a function's shards has a namespace, from 0. It follows from the hash that API servers count
 * (KEP-5866). So a server that leaves out a namespace by its hash leaves out none of another shard. That hash alone puts
 * `tenant-00` to `tenant-99` side by side.
 */
export function shardOfNamespace(namespace: string, shards: number): number {
  const { high, low } = namespaceHash(namespace);
  return finished(high ^ finished(low)) % shards;
}

/** 32 bits that are as good as random, and the same everywhere. */
function scattered(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return finished(hash);
}

/** Murmur3's finalizer: each bit of what it gives depends on each bit of what it takes. */
function finished(bits: number): number {
  let hash = bits;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** The slot of `slots` that a function is in: the one that draws it most, so that other names change nothing of it. */
export function slotOf(name: string, slots: number): number {
  let [best, most] = [0, -1];
  for (let slot = 0; slot < slots; slot++) {
    const pull = drawn(name, slot);
    if (pull > most) [best, most] = [slot, pull];
  }
  return best;
}

/**
 * The slots that a function's shards are in, by the shards' numbers: those that draw it most. Each is another one, and
 * the first is the slot of a function that is not spread. At most all there are.
 */
export function slotsOf(name: string, shards: number, slots: number): readonly number[] {
  if (shards === 1) return [slotOf(name, slots)];
  const pulls = Array.from({ length: slots }, (_, slot) => ({ slot, pull: drawn(name, slot) }));
  return pulls
    .sort((a, b) => b.pull - a.pull || a.slot - b.slot)
    .slice(0, shards)
    .map(({ slot }) => slot);
}
