import type { Batch } from "../../journal/batch.ts";
import type { LoopAccount } from "./loop-time.ts";

/** Bytes of a body that are written without a charge. Most objects are smaller. */
const freeBytes = 16 * 1024;
/** Milliseconds of the event loop that SQLite takes for each further byte. Measured: 0.5 ms for 100 KB, 5 to 10 ms for 1 MB. */
const byteMs = 5e-6;

/** Charges each function for the large bodies in a commit: last bodies, events on disk and dead letters. */
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

  /** @param keepsBodies whether the store writes last bodies */
  charge({ known, bodies, spill, deadLetters }: Batch, keepsBodies: boolean): void {
    if (keepsBodies) {
      for (const { view, state } of known) if (state?.body && state.body !== "older") this.chargeOne(view, state.body);
      for (const { view, body } of bodies) this.chargeOne(view, body);
    }
    for (const rows of [spill, deadLetters]) {
      for (const { view, body, oldBody } of rows) {
        this.chargeOne(view, body);
        this.chargeOne(view, oldBody);
      }
    }
  }

  private chargeOne(view: number, body: Buffer | undefined): void {
    if (body && body.length > freeBytes) this.accounts.get(view)?.charge("rows", (body.length - freeBytes) * byteMs);
  }
}
