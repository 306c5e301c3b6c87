/** The last entries of many, at most so many of them. */
export class Ring<T> {
  private readonly limit: number;
  private readonly entries: T[] = [];
  /** Where the next one goes. */
  private next = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  push(entry: T): void {
    this.entries[this.next] = entry;
    this.next = (this.next + 1) % this.limit;
  }

  /** Newest first. */
  *[Symbol.iterator](): Iterator<T> {
    const { entries, next } = this;
    for (let back = 1; back <= entries.length; back++) {
      yield entries[(next - back + entries.length) % entries.length] as T;
    }
  }
}
