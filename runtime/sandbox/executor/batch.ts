/** Milliseconds of CPU that one entry should take: short, so that a limit is charged to the event that broke it. */
const entryTargetMs = 25;
/** Items of one entry at most: from here on, larger batches gain nothing. */
const maxItems = 64;

/** One thing for the guest to do. */
export interface Item {
  /** The event it belongs to. */
  readonly no: number;
  /** The item's JSON in the batch's head. */
  readonly head: string;
  /** The text that the head's lengths mean. */
  readonly text: string;
}

/** An event as it comes from the parent: texts of JSON. */
export interface QueuedEvent {
  readonly no: number;
  readonly timeoutMs: number;
  /** All of it but its objects. */
  readonly head: string;
  readonly object: string;
  /** Where its metadata is in it; below 0 where that is not known. */
  readonly metadataAt: number;
  readonly metadataEnd: number;
  readonly oldObject: string | undefined;
}

export const eventItem = ({ no, head, object, metadataAt, metadataEnd, oldObject }: QueuedEvent): Item => ({
  no,
  head: `[0,${no},${head.length},${object.length},${oldObject === undefined ? -1 : oldObject.length},${metadataAt},${metadataEnd}]`,
  text: oldObject === undefined ? head + object : head + object + oldObject,
});

export const replyItem = (no: number, call: number, ok: 0 | 1, text: string): Item => ({
  no,
  head: `[1,${call},${ok},${text.length}]`,
  text,
});

export const abortItem = (no: number, why: "deadline" | "cpu"): Item => ({
  no,
  head: `[2,${no},${why === "cpu" ? 1 : 0}]`,
  text: "",
});

/** The text of a batch, as the guest's `pump` reads it. `most`: events that may run at once. */
export function composeBatch(nowMs: number, seed: string, most: number, items: readonly Item[]): string {
  let heads = "";
  let texts = "";
  for (const item of items) {
    heads = heads === "" ? item.head : `${heads},${item.head}`;
    texts += item.text;
  }
  return `[${nowMs},"${seed}",${most},[${heads}]]\n${texts}`;
}

/**
 * How many items the next entry takes, by what the last ones cost. It begins with one, so that a function whose every
 * event breaks a limit never drags others along, and grows fourfold an entry.
 */
export class BatchSize {
  private itemMs = entryTargetMs;
  /** Events that the next entry takes beyond those that can begin at once: as many as began so in the last ones. */
  private beyond = maxItems;

  get items(): number {
    return Math.min(maxItems, Math.max(1, Math.floor(entryTargetMs / this.itemMs)));
  }

  /** How many of them may be events, where `room` can begin at once. */
  eventsIn(room: number): number {
    return room + this.beyond;
  }

  /** Notes an entry of `items` that took `cpuMs`. */
  took(items: number, cpuMs: number): void {
    if (items > 0) this.itemMs = Math.max(cpuMs / items, this.itemMs / 4, 0.01);
  }

  /** Notes that of an entry's events `began` did and `left` did not, where `room` could at once. */
  began(began: number, left: number, room: number): void {
    if (left > 0) this.beyond = Math.max(0, began - room);
    else if (began > room || this.beyond === 0) this.beyond = Math.min(maxItems, 4 * this.beyond + 1);
  }
}
