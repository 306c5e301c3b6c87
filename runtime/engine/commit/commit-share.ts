import type { Commits } from "./commits.ts";

/**
 * Rows that one function adds to a commit before it waits for the next. Without a bound a commit had all that had gathered
 * while the one before it was written: 2,000 rows.
 */
export const mostRows = 128;

/** One function's share of the commit that gathers writes. Others' writes find room in it, and it is written soon. */
export class CommitShare {
  private readonly commits: Pick<Commits, "number" | "written">;
  private readonly again: () => void;
  private commit = Number.NaN;
  private rows = 0;
  /** Rows that were added since it was made. */
  added = 0;
  private waits = false;
  private isClosed = false;
  /** What is done once there is room for its rows, in the order in which it was given. */
  private readonly putOff: (() => void)[] = [];

  /** @param again called once the commit is written in which the share was used up, where somebody has asked meanwhile */
  constructor(commits: Pick<Commits, "number" | "written">, again: () => void) {
    this.commits = commits;
    this.again = again;
  }

  /** Rows that the function has added. */
  add(rows = 1): void {
    const { number } = this.commits;
    if (number !== this.commit) this.rows = 0;
    this.commit = number;
    this.rows += rows;
    this.added += rows;
  }

  /** Whether the function is to add nothing for now that it can put off. Where it is, the commit is written at once. */
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

  /** Does something that adds rows as soon as there is room for them: now, or behind what waits already. */
  soon(work: () => void): void {
    if (this.putOff.length === 0 && !this.isSpent) work();
    else this.putOff.push(work);
  }

  /** The function stops: nothing is put off any more, since a store that has failed may write no further commit. */
  close(): void {
    this.isClosed = true;
    for (const work of this.putOff.splice(0)) work();
  }
}
