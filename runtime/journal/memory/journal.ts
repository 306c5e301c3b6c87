import { apart } from "../../v8/own-copy.ts";
import {
  type DeadLetter,
  emptyLetter,
  type JournalEntries,
  type KnownBody,
  type KnownIdentity,
  type KnownState,
  type Spilled,
  type StoredEvent,
} from "../batch.ts";
import { type DeadLetterSize, sizeOfLetter } from "../dead-letter-stats.ts";
import { type Journal, type PreviousEnd, type QueueRange, type Queues, takeWithin } from "../journal.ts";
import { type HeldObject, JournalState } from "../state.ts";

/** The state that outlives a `MemoryJournal`, as a file outlives the process that wrote it. */
export class MemoryDisk extends JournalState {
  end: PreviousEnd = "new";
  readonly spill = new Map<string, Spilled>();
  readonly letters = new Map<string, DeadLetter>();

  /** Deletes all rows, to receive those of another journal. Keeps how the last run ended. */
  clear(): void {
    for (const rows of [this.views, this.begun, this.own, this.spill, this.letters, this.paused]) rows.clear();
    this.cluster = undefined;
    this.nextView = 1;
    this.nextLetter = 1;
  }

  override apply(entries: JournalEntries): void {
    super.apply(entries);
    const { views, spill, letters } = this;
    for (const { view, key, state } of entries.known) {
      const known = views.get(view)?.known;
      if (state) known?.set(key, become(known.get(key), state));
      else known?.delete(key);
    }
    for (const { view, key, body } of entries.bodies) {
      const known = views.get(view)?.known;
      const found = known?.get(key);
      if (found) known?.set(key, { ...found, body, bodyIsOlder: false });
    }
    for (const event of entries.spill) spill.set(`${event.function}/${event.sequence}`, withOwnBodies(event));
    for (const { function: name, sequence } of entries.unspill) spill.delete(`${name}/${sequence}`);
    for (const letter of entries.droppedDeadLetters) letters.delete(letter);
    for (const letter of entries.emptiedDeadLetters) {
      const found = letters.get(letter);
      if (found) letters.set(letter, emptyLetter(found, letter));
    }
    for (const event of entries.deadLetters) {
      letters.set(event.letter, withOwnBodies(event));
      this.nextLetter = Math.max(this.nextLetter, Number(event.letter) + 1);
    }
  }

  override forgetView(id: number): void {
    super.forgetView(id);
    for (const [key, event] of this.spill) if (event.view === id) this.spill.delete(key);
  }

  /** Returns rows ordered by number. */
  rows<Q extends keyof Queues>(queue: Q, { function: name, after, limit }: QueueRange): Queues[Q]["whole"][] {
    const all: Iterable<Queues[Q]["whole"]> = this[queue].values();
    const numberOf = (row: Spilled | DeadLetter) => ("sequence" in row ? row.sequence : Number(row.letter));
    const found: Queues[Q]["whole"][] = [];
    for (const row of all) {
      if ((name !== undefined && row.function !== name) || numberOf(row) <= after) continue;
      found.push(row);
      // Letters are stored in order.
      if (queue === "letters" && found.length === limit) break;
    }
    if (queue === "spill") found.sort((a, b) => numberOf(a) - numberOf(b));
    return found.slice(0, limit);
  }
}

/**
 * A journal in memory. Tests use it, where another journal on the same disk is a restart. Journals that keep a copy elsewhere
 * extend it.
 */
export class MemoryJournal implements Journal {
  readonly state: MemoryDisk;
  readonly capabilities: Journal["capabilities"] = { queues: true, bodies: true, packed: false };
  readonly room: Journal["room"] = { spill: Number.POSITIVE_INFINITY, letters: Number.POSITIVE_INFINITY };
  previousEnd: PreviousEnd;

  constructor(disk = new MemoryDisk()) {
    this.state = disk;
    this.previousEnd = disk.end;
    disk.end = disk.end === "power-loss" ? disk.end : "killed";
  }

  async append(entries: JournalEntries): Promise<void> {
    this.state.apply(this.whole(entries));
  }

  /** Adds the rows that the entries concern without containing them. */
  protected whole(entries: JournalEntries): JournalEntries {
    if (entries.possiblyDelivered === undefined) return entries;
    const waiting = this.state.rows("spill", { function: entries.possiblyDelivered, after: Number.NEGATIVE_INFINITY });
    const fresh = waiting.filter(({ redelivered }) => !redelivered);
    return { ...entries, spill: fresh.map((event) => ({ ...event, redelivered: true })) };
  }

  async sync(): Promise<void> {}

  async known(view: number, visit: (key: string, identity: KnownIdentity) => void): Promise<void> {
    const objects = this.state.views.get(view)?.known ?? [];
    for (const [key, { body: _, bodyIsOlder: __, ...identity }] of objects) visit(key, identity);
  }

  async body(view: number, key: string): Promise<KnownBody | undefined> {
    const { body, bodyIsOlder = false } = this.state.views.get(view)?.known.get(key) ?? {};
    return body && { bytes: body, isOlder: bodyIsOlder };
  }

  headers<Q extends keyof Queues>(queue: Q, range: QueueRange): Queues[Q]["header"][] {
    const header = headers[queue];
    return this.state.rows(queue, range).map((row) => header(row));
  }

  async page<Q extends keyof Queues>(queue: Q, range: QueueRange, bytes = Number.POSITIVE_INFINITY) {
    return takeWithin(this.state.rows(queue, range), bytes);
  }

  *letterSizes(): Generator<readonly [string, string, DeadLetterSize]> {
    for (const letter of this.state.letters.values())
      yield [letter.function, letter.letter, sizeOfLetter(letter, this.capabilities.packed)];
  }

  async close(clean: boolean): Promise<void> {
    if (clean) this.state.end = "clean";
  }
}

const headers: { readonly [Q in keyof Queues]: (row: Queues[Q]["whole"]) => Queues[Q]["header"] } = {
  spill: (event) => ({ ...event, size: event.body.length }),
  letters: (letter) => letter,
};

function become(before: HeldObject | undefined, { body, ...identity }: KnownState): HeldObject {
  return body === "older"
    ? { ...identity, body: before?.body, bodyIsOlder: true }
    : { ...identity, body: body && apart(body) };
}

/** Copies bodies that are kept for long, so that they do not keep chunks read from sockets alive, whose memory is not counted. */
const withOwnBodies = <T extends Pick<StoredEvent, "body" | "oldBody">>(event: T): T => ({
  ...event,
  body: apart(event.body),
  oldBody: event.oldBody && apart(event.oldBody),
});
