import { WatchfireError } from "../../base/errors.ts";
import type { StateWrite } from "../../journal/batch.ts";

/** Bytes that an entry counts in addition to its key and its JSON text. */
const entryBytes = 32;

const sizeOf = (key: string, value: string | undefined): number =>
  value === undefined ? 0 : entryBytes + Buffer.byteLength(key) + Buffer.byteLength(value);

/** A function's own entries (`ctx.state`): JSON text by key, as of the attempts that have ended. */
export class OwnState {
  readonly functionName: string;
  private readonly entries: Map<string, string>;
  private bytes = 0;
  /** The attempts that use it and have not ended. */
  private readonly open = new Set<StagedState>();

  /** @param entries the stored entries */
  constructor(functionName: string, entries: ReadonlyMap<string, string>) {
    this.functionName = functionName;
    this.entries = new Map(entries);
    for (const [key, value] of entries) this.bytes += sizeOf(key, value);
  }

  /** Iterates over the keys and the JSON texts. */
  [Symbol.iterator](): Iterator<[key: string, value: string]> {
    return this.entries[Symbol.iterator]();
  }

  /** Returns what one attempt sees of it. Its `end` must follow. */
  stage(): StagedState {
    const staged = new StagedState(this, this.entries, () => this.open.delete(staged));
    this.open.add(staged);
    return staged;
  }

  /** Returns its size if `staged` changed it by `growth` bytes, counting what other attempts may add. In bytes. */
  sizeWith(staged: StagedState, growth: number): number {
    let size = this.bytes + growth;
    for (const other of this.open) if (other !== staged) size += Math.max(0, other.growth);
    return size;
  }

  /** Applies an ended attempt's writes. */
  apply(writes: readonly StateWrite[]): void {
    for (const { key, value } of writes) {
      this.bytes += sizeOf(key, value) - sizeOf(key, this.entries.get(key));
      if (value === undefined) this.entries.delete(key);
      else this.entries.set(key, value);
    }
  }
}

/**
 * One attempt's view of its function's state: the entries of ended attempts, and its own writes. Nobody else sees these before
 * the attempt has ended well.
 */
export class StagedState {
  private readonly of: OwnState;
  private readonly entries: ReadonlyMap<string, string>;
  private readonly ended: () => void;
  /** `undefined`: deleted. */
  private readonly writes = new Map<string, string | undefined>();
  /** Bytes that its writes add to the entries as they were at each write. */
  growth = 0;

  constructor(of: OwnState, entries: ReadonlyMap<string, string>, ended: () => void) {
    this.of = of;
    this.entries = entries;
    this.ended = ended;
  }

  /** Returns an entry's JSON text. */
  get(key: string): string | undefined {
    return this.writes.has(key) ? this.writes.get(key) : this.entries.get(key);
  }

  /** Returns the keys that begin with `prefix`, in their order. */
  keys(prefix: string): string[] {
    const all = new Set(this.entries.keys());
    for (const [key, value] of this.writes) {
      if (value === undefined) all.delete(key);
      else all.add(key);
    }
    return [...all].filter((key) => key.startsWith(prefix)).toSorted();
  }

  /**
   * Sets an entry to a JSON text, or deletes it if `value` is undefined.
   * @param limit bytes that all entries of the function may take
   * @throws WatchfireError WF_STATE_FULL; nothing is changed then
   */
  put(key: string, value: string | undefined, limit: number): void {
    const growth = this.growth + sizeOf(key, value) - sizeOf(key, this.get(key));
    const size = this.of.sizeWith(this, growth);
    if (growth > this.growth && size > limit) {
      const what = `set ${JSON.stringify(key)} would make the state of ${this.of.functionName} ${size} bytes, and ${limit} are allowed`;
      throw new WatchfireError("WF_STATE_FULL", { what });
    }
    this.writes.set(key, value);
    this.growth = growth;
  }

  /** Ends the attempt. Returns its writes, which count from now on and must be committed; no writes if it is not `kept`. */
  end(kept: boolean): readonly StateWrite[] {
    this.ended();
    if (!kept) return [];
    const writes = [...this.writes].map(([key, value]) => ({ function: this.of.functionName, key, value }));
    this.of.apply(writes);
    return writes;
  }
}
