/**
 * How much `name` is drawn to `place`, 32 bits: the same everywhere, and for each pair as good as random. FNV-1a over
 * both, and murmur3's finalizer, since FNV alone tells names that end alike hardly apart.
 */
export function drawn(name: string, place: string | number): number {
  let hash = 0x811c9dc5;
  const text = `${place}\0${name}`;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
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
