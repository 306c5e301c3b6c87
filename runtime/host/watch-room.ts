import { WatchfireError } from "../base/errors.ts";
import type { FunctionManifest } from "../manifest/function.ts";

/** Watches that all manifests may name together: 150 MiB of memory, each of them 190 KB. One that several functions share counts once. */
const mostWatches = 800;

/** A manifest that names no more is always taken: those that name many share the room. */
const fewWatches = 8;

/** The room for watches of the API server, as manifests name them: whoever names many waits until there is some. */
export class WatchRoom {
  private readonly keysOf = new Map<object, ReadonlySet<string>>();
  private readonly holders = new Map<string, number>();

  /** Why a function may not watch so many sources while others watch theirs; undefined where it may. */
  objection(holder: object, keys: ReadonlySet<string>, { file }: FunctionManifest): WatchfireError | undefined {
    if (keys.size <= fewWatches) return undefined;
    const before = this.keysOf.get(holder);
    let count = this.holders.size;
    for (const key of keys) if (!this.holders.has(key)) count++;
    for (const key of before ?? []) if (!keys.has(key) && this.holders.get(key) === 1) count--;
    if (count <= mostWatches || keys.size <= (before?.size ?? 0)) return undefined;
    const what = `it names ${keys.size} watches, and all functions together would have ${count}, of ${mostWatches}`;
    return new WatchfireError("WF_RUNTIME_WATCHES", { what, place: { file } });
  }

  /** The function watches these from now on, in place of what it did. */
  take(holder: object, keys: ReadonlySet<string>): void {
    this.leave(holder);
    this.keysOf.set(holder, keys);
    for (const key of keys) this.holders.set(key, (this.holders.get(key) ?? 0) + 1);
  }

  leave(holder: object): void {
    for (const key of this.keysOf.get(holder) ?? []) {
      const left = (this.holders.get(key) ?? 0) - 1;
      if (left > 0) this.holders.set(key, left);
      else this.holders.delete(key);
    }
    this.keysOf.delete(holder);
  }
}
