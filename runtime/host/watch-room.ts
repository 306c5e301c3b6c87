import { WatchfireError } from "../base/errors.ts";
import type { FunctionManifest } from "../manifest/function.ts";

/**
 * Maximum number of watches in all manifests: 150 MiB of memory at 190 KB each. A watch shared by several functions counts once.
 */
const mostWatches = 800;

/** A manifest with no more watches than this is always accepted. Manifests with more share the room. */
const fewWatches = 8;

/** Limits the watches of the API server that manifests name. A function with many watches waits until there is room. */
export class WatchRoom {
  private readonly keysOf = new Map<object, ReadonlySet<string>>();
  private readonly holders = new Map<string, number>();

  /** Returns an error if there is no room for a function's watches at present. */
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

  /** Records a function's watches, in place of its earlier ones. */
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
