import type { ListReceiver } from "../informer/fanout/subscriber.ts";
import type { Change } from "../informer/scan/change.ts";
import { keep, Objects } from "./objects.ts";
import type { ReplicaReader, SourceCache } from "./source-cache.ts";

/** Counts the bytes that the objects of one source would take, without keeping them. It ends with the first complete list. */
export class SourceSize implements SourceCache {
  readonly id: string;
  readonly readers = new Set<ReplicaReader>();
  readonly resumeFrom = undefined;
  readonly congested = undefined;
  readonly at = undefined;
  readonly ageMs = undefined;
  bytes = 0;
  private readonly fields: (readonly string[])[] = [];
  private counted: Objects | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** Empty, and set once all objects are counted. */
  get objects(): Objects | undefined {
    return this.counted;
  }

  /** Objects already counted are not counted again with this index. Readers pass their indexes when they join. */
  index(path: readonly string[]): void {
    this.fields.push(path);
  }

  covers(): boolean {
    return false;
  }

  list(): ListReceiver {
    if (this.counted) return { item: () => {}, end: () => "counted", abort: () => {} };
    this.bytes = 0;
    const one = new Objects(this.fields);
    return {
      item: (change) => {
        this.bytes += sizeIn(one, change);
        for (const reader of [...this.readers]) reader.grown();
      },
      end: () => {
        this.end();
        return "counted";
      },
      abort: () => {
        this.bytes = 0;
      },
    };
  }

  change(): void {}

  bookmark(): void {}

  kindIsMissing(): void {
    this.end();
  }

  private end(): void {
    this.counted ??= new Objects([]);
    for (const reader of [...this.readers]) reader.moved();
  }
}

function sizeIn(objects: Objects, change: Change): number {
  objects.put(keep(change));
  const { bytes } = objects;
  objects.remove(change.meta);
  return bytes;
}
