import type { Commits } from "./commits.ts";

/**
 * The number of rows that a function adds to a commit before it waits for the next. Without a limit, a commit had all rows that
 * had gathered while the one before it was written: 2,000.
 */
export const mostRows = 128;

/**
 * A function's share of the commit that gathers writes. The limit leaves room for other functions, and the commit is written
 * soon.
 */
export class CommitShare {
  private readonly commits: Pick<Commits, "number" | "written">;
  private readonly again: () => void;
  private commit = Number.NaN;
  private rows = 0;
  /** The number of rows added since construction. */
  added = 0;
  private waits = false;
  private isClosed = false;
  /** Work that waits for room for its rows, in the order in which it was submitted. */
  private readonly putOff: (() => void)[] = [];

  /** @param again called when the commit in which the share was used up is written, if `isSpent` was read meanwhile */
  constructor(commits: Pick<Commits, "number" | "written">, again: () => void) {
    this.commits = commits;
    this.again = again;
  }

  /** Counts rows that the function has added. */
  add(rows = 1): void {
    const { number } = this.commits;
    if (number !== this.commit) this.rows = 0;
    this.commit = number;
    this.rows += rows;
    this.added += rows;
  }

  /**
   * Whether the share is used up, so that the function must add no row that can wait. If it is, the commit is written at once.
   */
  get isSpent(): boolean {
    if (this.isClosed) return false;
    if (this.waits) return true;
    if (this.commits.number !== this.commit || this.rows < mostRows) return false;
    this.waits = true;
    this.commits.written(() => {
      this.waits = false;
      while (this.putOff.length > 0 && !this.isSpent) this.putOff.shift()?.();
      this.again();
    });
    return true;
  }

  /** Runs work that adds rows as soon as there is room for them: now, or after the work that waits already. */
  soon(work: () => void): void {
    if (this.putOff.length === 0 && !this.isSpent) work();
    else this.putOff.push(work);
  }

  /** Runs all waiting work when the function stops: a store that has failed may write no further commit. */
  close(): void {
    this.isClosed = true;
    for (const work of this.putOff.splice(0)) work();
  }
}
