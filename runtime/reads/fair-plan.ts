/** A function that needs room for the objects of some sources. */
export interface CacheReader {
  /** Bytes by source key (`sourceKey`). */
  readonly demand: ReadonlyMap<string, number>;
}

/** The sources of some readers. Each source takes its bytes once, however many readers it has. */
class SourcePool {
  private readonly sizes = new Map<string, number>();
  private readonly readers = new Map<string, number>();
  total = 0;

  /** Readers may report different sizes of one source, if one has not read all of it. The largest counts. */
  constructor(holders: Iterable<CacheReader>) {
    for (const { demand } of holders)
      for (const [source, bytes] of demand) this.sizes.set(source, Math.max(bytes, this.sizes.get(source) ?? 0));
  }

  add({ demand }: CacheReader): void {
    for (const source of demand.keys()) this.read(source, 1);
  }

  remove({ demand }: CacheReader): void {
    for (const source of demand.keys()) this.read(source, -1);
  }

  /** Returns the bytes charged to a reader: those of each source are divided equally among its readers. */
  chargeOf({ demand }: CacheReader): number {
    let charge = 0;
    for (const source of demand.keys()) charge += this.sizeOf(source) / (this.readers.get(source) ?? 1);
    return charge;
  }

  private read(source: string, more: 1 | -1): void {
    const before = this.readers.get(source) ?? 0;
    this.readers.set(source, before + more);
    if (Math.min(before, before + more) === 0) this.total += more * this.sizeOf(source);
  }

  private sizeOf(source: string): number {
    return this.sizes.get(source) ?? 0;
  }
}

/**
 * Chooses the readers that may keep their objects within the limit. While the sum exceeds the limit, the reader with the largest
 * charge is left out. The charges add up to the sum, so the largest is above an equal share. If two charges are equal, the later
 * in order is left out. A reader that fits in the end after all, for example because its source stays for another reader, is
 * kept.
 */
export function planFairly<Of extends CacheReader>(holders: readonly Of[], limit: number): Set<Of> {
  const pool = new SourcePool(holders);
  const kept = new Set(holders);
  for (const holder of kept) pool.add(holder);
  const left: Of[] = [];
  while (pool.total > limit && kept.size > 0) {
    const most = mostCharged(kept, pool);
    kept.delete(most);
    pool.remove(most);
    left.push(most);
  }
  for (const holder of left.reverse()) {
    pool.add(holder);
    if (pool.total <= limit) kept.add(holder);
    else pool.remove(holder);
  }
  return kept;
}

function mostCharged<Of extends CacheReader>(holders: Iterable<Of>, pool: SourcePool): Of {
  let most: { readonly holder: Of; readonly charge: number } | undefined;
  for (const holder of holders) {
    const charge = pool.chargeOf(holder);
    if (!most || charge >= most.charge) most = { holder, charge };
  }
  if (!most) throw new Error("nobody holds anything");
  return most.holder;
}
