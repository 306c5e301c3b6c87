import { zstdCompressSync } from "node:zlib";
import type { NewDeadLetter } from "./batch.ts";
import { headerOf } from "./rows.ts";

/** What a function's dead letters may take. */
export interface DeadLetterLimit {
  readonly maxCount: number;
  /** Of records and bodies together. */
  readonly maxBytes: number;
}

/** Dead letters of one function that have to go, oldest first: whole, or their bodies alone. */
export interface DeadLetterCut {
  readonly function: string;
  readonly letters: readonly string[];
  readonly bodies: readonly string[];
}

/** What a function has, and what of its letters had to go since the store was opened. */
export interface DeadLetterStock {
  readonly count: number;
  readonly withoutBody: number;
  readonly bytes: number;
  readonly lettersDropped: number;
  readonly bodiesDropped: number;
}

/** What a dead letter takes, in bytes; its body counts 0 once it is dropped. */
export interface DeadLetterSize {
  readonly record: number;
  readonly body: number;
}

/** `packed`: as it lies compressed, or less: what is compressed together takes less than each alone. */
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

/** One function's dead letters by age. */
class Shelf {
  limit = unlimited;
  bytes = 0;
  lettersDropped = 0;
  bodiesDropped = 0;
  /** All of them, and those that have their bodies; each oldest first. */
  private readonly sizes = new Map<string, DeadLetterSize>();
  private readonly whole = new Set<string>();
  private letters: string[] = [];
  private bodies: string[] = [];
  private readonly name: string;
  /** Shelves of which something has to go. */
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

  /** Drops the oldest body; without one, the oldest record. Gives the bytes of it, 0 where nothing is left. */
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

  /** Drops the oldest record. Gives its bytes. */
  dropOldest(): number {
    const before = this.bytes;
    const [oldest] = this.sizes.keys();
    if (oldest === undefined) return 0;
    this.remove(oldest);
    this.letters.push(oldest);
    this.giving.add(this);
    return before - this.bytes;
  }

  /** What had to go since it was asked last. */
  cut(): DeadLetterCut {
    const { name, letters, bodies } = this;
    this.letters = [];
    this.bodies = [];
    const gone = new Set(letters);
    return { function: name, letters, bodies: bodies.filter((letter) => !gone.has(letter)) };
  }
}

/**
 * The dead letters of a store, and their sizes. It says which have to go so that each function keeps within its limit
 * and all of them within the store's. Bodies go first, oldest first, and then records. Where all together are too much,
 * the function that has most gives way, so that one that fails always cannot cost another a letter.
 */
export class DeadLetterStats {
  private readonly room: () => number;
  private readonly shelves = new Map<string, Shelf>();
  private readonly giving = new Set<Shelf>();
  private bytes = 0;

  /** @param room for the dead letters of all functions, in bytes; asked each time. */
  constructor(room: () => number) {
    this.room = room;
  }

  stock(functionName: string): DeadLetterStock {
    return (this.shelves.get(functionName) ?? new Shelf(functionName, this.giving)).stock;
  }

  /** Notes a letter that is in the store. */
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

  /** Bounds a function's letters from now on. What goes beyond is in the next `cuts`. */
  limit(functionName: string, limit: DeadLetterLimit): void {
    const shelf = this.shelf(functionName);
    shelf.limit = limit;
    while (shelf.count > limit.maxCount) this.bytes -= shelf.dropOldest();
    while (shelf.bytes > limit.maxBytes) this.bytes -= shelf.shrink();
  }

  /** Makes room for a new letter; what has to go for it is in the next `cuts`. Gives whether its body may be kept. */
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

  /** Forgets the letters, and not the limits: they are read from the store anew. */
  reset(): void {
    this.bytes = 0;
    this.giving.clear();
    for (const [name, { limit, lettersDropped, bodiesDropped }] of [...this.shelves]) {
      this.shelves.delete(name);
      Object.assign(this.shelf(name), { limit, lettersDropped, bodiesDropped });
    }
  }

  /** What had to go since it was asked last, to be taken out of the store. */
  cuts(): DeadLetterCut[] {
    const cuts = [...this.giving].map((shelf) => shelf.cut());
    this.giving.clear();
    return cuts;
  }

  /** They are out of the store. */
  counted(cuts: readonly DeadLetterCut[]): void {
    for (const { function: name, letters, bodies } of cuts) {
      const shelf = this.shelf(name);
      shelf.lettersDropped += letters.length;
      shelf.bodiesDropped += bodies.length;
    }
  }

  /** The function that would have most, with `bytes` more for its `own`. Only one that has something. */
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
