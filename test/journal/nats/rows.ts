import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { type Batch, emptyBatch } from "../../../runtime/journal/batch.ts";
import type { Checkpoint } from "../../../runtime/journal/checkpoint.ts";

/** Commits exactly these parts of a batch. */
export const commit = (store: Checkpoint, batch: Partial<Batch>) => store.commit({ ...emptyBatch, ...batch });

/** An object's row; its resourceVersion increases. */
export const row = (view: number, key: string, version: number, body?: Buffer | "older") => ({
  view,
  key,
  state: {
    uid: `u-${key}`,
    resourceVersion: resourceVersion(String(version)),
    hash: "",
    deleted: false,
    matched: true,
    body,
  },
});

/** A checkpoint in all namespaces. */
export const cursor = (view: number, mark: number) => ({
  view,
  namespace: "",
  selection: "",
  lowWaterMark: resourceVersion(String(mark)),
  epoch: 0,
  initial: false,
});

/** The checkpoint of the first view. */
export async function markOf(store: Checkpoint): Promise<number> {
  return Number((await store.views())[0]?.cursors[0]?.lowWaterMark ?? 0);
}

/** Commits one batch after the other as the dispatcher does, repeating a batch until it is accepted. */
export class Commits {
  /** The last acknowledged checkpoint. */
  acknowledged = 0;
  private ended = false;
  private readonly work: Promise<void>;

  constructor(store: Checkpoint, view: number) {
    this.work = this.run(store, view);
  }

  async end(): Promise<void> {
    this.ended = true;
    await this.work;
  }

  private async run(store: Checkpoint, view: number): Promise<void> {
    for (let n = 1; !this.ended; n++) {
      const known = [row(view, `a/${n % 50}`, n, Buffer.from(`${n}`))];
      const batch = { ...emptyBatch, known, cursors: [cursor(view, n)] };
      const isTaken = () =>
        store.commit(batch).then(
          () => true,
          () => false,
        );
      while (!(await isTaken())) await new Promise(setImmediate);
      this.acknowledged = n;
    }
  }
}
