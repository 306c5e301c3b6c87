import type { LoopAccount } from "./loop-time.ts";

/** Bytes of a body that are written without a charge. Most objects are smaller. */
const freeBytes = 16 * 1024;
/** Milliseconds of the event loop that SQLite takes for each further byte. Measured: 0.5 ms for 100 KB, 5 to 10 ms for 1 MB. */
const byteMs = 5e-6;

/** Charges each function for the large bodies that its rows add to a commit: last bodies, events on disk and dead letters. */
export class WrittenBodies {
  /** By view. */
  private readonly accounts = new Map<number, LoopAccount>();

  /** Charges `account` for the rows of these views. */
  add(views: Iterable<{ readonly id: number }>, account: LoopAccount): void {
    for (const { id } of views) this.accounts.set(id, account);
  }

  remove(views: Iterable<{ readonly id: number }>): void {
    for (const { id } of views) this.accounts.delete(id);
  }

  charge(view: number, body: Buffer | undefined): void {
    if (body && body.length > freeBytes) this.accounts.get(view)?.charge("rows", (body.length - freeBytes) * byteMs);
  }
}
