import { zstdCompressSync } from "node:zlib";
import type { NewDeadLetter } from "./batch.ts";
import { headerOf } from "./rows.ts";

/** Limits of a function's dead letters. */
export interface DeadLetterLimit {
  readonly maxCount: number;
  /** Records and bodies together. */
  readonly maxBytes: number;
}

/** Dead letters of one function to delete, oldest first: `letters` entirely, `bodies` without their records. */
export interface DeadLetterCut {
  readonly function: string;
  readonly letters: readonly string[];
  readonly bodies: readonly string[];
}

/** A function's dead letters at present, and how many were dropped since the store was opened. */
export interface DeadLetterStock {
  readonly count: number;
  readonly withoutBody: number;
  readonly bytes: number;
  readonly lettersDropped: number;
  readonly bodiesDropped: number;
}

/** Size of a dead letter in bytes. `body` is 0 once it is dropped. */
export interface DeadLetterSize {
  readonly record: number;
  readonly body: number;
}

/**
 * Returns a letter's size. `packed`: its compressed size, an upper bound, because letters that are compressed together take less.
 */
export function sizeOfLetter(letter: NewDeadLetter, packed: boolean): DeadLetterSize {
  const record = headerOf(letter).length;
  const bodies = [letter.body, letter.oldBody].filter((body) => body !== undefined && body.length > 0) as Buffer[];
  const bytesOf = (body: Buffer) => (packed ? zstdCompressSync(body) : body).length;
  return {
    record: packed ? Math.ceil(record / 4) : record,
    body: bodies.reduce((sum, body) => sum + bytesOf(body), 0),
  };
}

const unlimited: DeadLetterLimit = { maxCount: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };

/** One function's dead letters, by age. */
class Shelf {
  limit = unlimited;
  bytes = 0;
  lettersDropped = 0;
  bodiesDropped = 0;
  /** All letters, and the ids of those that have their bodies. Both oldest first. */
  private readonly sizes = new Map<string, DeadLetterSize>();
  private readonly whole = new Set<string>();
  private letters: string[] = [];
  private bodies: string[] = [];
  private readonly name: string;
  /** The shelves that have something to delete. */
  private readonly giving: Set<Shelf>;

  constructor(name: string, giving: Set<Shelf>) {
    this.name = name;
    this.giving = giving;
  }

  get count(): number {
    return this.sizes.size;
  }

  get stock(): DeadLetterStock {
    const { count, bytes, lettersDropped, bodiesDropped } = this;
    return { count, withoutBody: count - this.whole.size, bytes, lettersDropped, bodiesDropped };
  }

  add(letter: string, size: DeadLetterSize): void {
    this.sizes.set(letter, size);
    if (size.body > 0) this.whole.add(letter);
    this.bytes += size.record + size.body;
  }

  remove(letter: string): boolean {
    const size = this.sizes.get(letter);
    if (!size) return false;
    this.sizes.delete(letter);
    this.whole.delete(letter);
    this.bytes -= size.record + size.body;
    return true;
  }

  /** Drops the oldest body or, if no body is left, the oldest record. Returns the bytes freed; 0 if the shelf is empty. */
  shrink(): number {
    const [letter] = this.whole;
    const size = letter === undefined ? undefined : this.sizes.get(letter);
    if (letter === undefined || !size) return this.dropOldest();
    const { record, body } = size;
    this.whole.delete(letter);
    this.sizes.set(letter, { record, body: 0 });
    this.bytes -= body;
    this.bodies.push(letter);
    this.giving.add(this);
    return body;
  }

  /** Drops the oldest record. Returns the bytes freed. */
  dropOldest(): number {
    const before = this.bytes;
    const [oldest] = this.sizes.keys();
    if (oldest === undefined) return 0;
    this.remove(oldest);
    this.letters.push(oldest);
    this.giving.add(this);
    return before - this.bytes;
  }

  /** Returns what was dropped since the last call. */
  cut(): DeadLetterCut {
    const { name, letters, bodies } = this;
    this.letters = [];
    this.bodies = [];
    const gone = new Set(letters);
    return { function: name, letters, bodies: bodies.filter((letter) => !gone.has(letter)) };
  }
}

/**
 * Counts and sizes of a store's dead letters. Decides which letters to delete so that each function stays within its limit, and
 * all together within the store's. Bodies go first, then records, oldest first. If all together exceed the store's limit, the
 * function that uses most gives way, so that a function that always fails cannot cost another one a letter.
 */
export class DeadLetterStats {
  private readonly room: () => number;
  private readonly shelves = new Map<string, Shelf>();
  private readonly giving = new Set<Shelf>();
  private bytes = 0;

  /** @param room limit of all functions' dead letters together, in bytes; evaluated at each use */
  constructor(room: () => number) {
    this.room = room;
  }

  /** The functions that have letters. */
  get functions(): string[] {
    return [...this.shelves].flatMap(([name, { count }]) => (count > 0 ? [name] : []));
  }

  stock(functionName: string): DeadLetterStock {
    return (this.shelves.get(functionName) ?? new Shelf(functionName, this.giving)).stock;
  }

  /** Adds a letter that is in the store. */
  add(functionName: string, letter: string, size: DeadLetterSize): void {
    this.shelf(functionName).add(letter, size);
    this.bytes += size.record + size.body;
  }

  remove(letter: string): void {
    for (const shelf of this.shelves.values()) {
      const before = shelf.bytes;
      if (!shelf.remove(letter)) continue;
      this.bytes -= before - shelf.bytes;
      return;
    }
  }

  /** Sets the limit of a function's letters. The next `cuts` has the letters beyond it. */
  limit(functionName: string, limit: DeadLetterLimit): void {
    const shelf = this.shelf(functionName);
    shelf.limit = limit;
    while (shelf.count > limit.maxCount) this.bytes -= shelf.dropOldest();
    while (shelf.bytes > limit.maxBytes) this.bytes -= shelf.shrink();
  }

  /**
   * Makes room for a new letter; the next `cuts` has what must be deleted for it. Returns whether the new letter's body may be
   * kept.
   */
  admit(functionName: string, { record, body }: DeadLetterSize): boolean {
    const own = this.shelf(functionName);
    const { maxCount, maxBytes } = own.limit;
    const most = Math.min(maxBytes, this.room());
    const kept = record + body <= most ? body : 0;
    const bytes = record + kept;
    const free = (shelf: Shelf) => {
      this.bytes -= shelf.shrink();
    };
    while (own.count > 0 && own.count >= maxCount) this.bytes -= own.dropOldest();
    while (own.count > 0 && own.bytes + bytes > maxBytes) free(own);
    while (this.bytes > 0 && this.bytes + bytes > this.room()) free(this.fullest(own, bytes));
    return kept > 0;
  }

  /** Forgets all letters, but keeps the limits. The caller then reads the letters from the store again. */
  reset(): void {
    this.bytes = 0;
    this.giving.clear();
    for (const [name, { limit, lettersDropped, bodiesDropped }] of [...this.shelves]) {
      this.shelves.delete(name);
      Object.assign(this.shelf(name), { limit, lettersDropped, bodiesDropped });
    }
  }

  /** Returns what was dropped since the last call, for deletion from the store. */
  cuts(): DeadLetterCut[] {
    const cuts = [...this.giving].map((shelf) => shelf.cut());
    this.giving.clear();
    return cuts;
  }

  /** Counts the cuts as dropped, once they are deleted from the store. */
  counted(cuts: readonly DeadLetterCut[]): void {
    for (const { function: name, letters, bodies } of cuts) {
      const shelf = this.shelf(name);
      shelf.lettersDropped += letters.length;
      shelf.bodiesDropped += bodies.length;
    }
  }

  /** Returns the function that would use most if `own` had `bytes` more. Ignores functions without letters. */
  private fullest(own: Shelf, bytes: number): Shelf {
    const having = [...this.shelves.values()].filter((shelf) => shelf.count > 0);
    const weight = (shelf: Shelf) => shelf.bytes + (shelf === own ? bytes : 0);
    return having.reduce((most, shelf) => (weight(shelf) > weight(most) ? shelf : most));
  }

  private shelf(functionName: string): Shelf {
    let shelf = this.shelves.get(functionName);
    if (!shelf) {
      shelf = new Shelf(functionName, this.giving);
      this.shelves.set(functionName, shelf);
    }
    return shelf;
  }
}
