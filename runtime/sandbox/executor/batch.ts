/** Milliseconds of CPU that one entry should take: short, so that a limit is charged to the event that broke it. */
const entryTargetMs = 25;
/** Items of one entry at most: from here on, larger batches gain nothing. */
const maxItems = 64;

/** One thing for the guest to do. */
export interface BatchItem {
  /** The event it belongs to. */
  readonly no: number;
  /** The item's JSON in the batch's head. */
  readonly head: string;
  /** Its text, which the head's lengths mean, lies in this one from `from` to `to`. */
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

/** An event that waits for its turn. */
export interface QueuedEvent extends BatchItem {
  readonly timeoutMs: number;
}

export const replyItem = (no: number, call: number, ok: 0 | 1, text: string): BatchItem => ({
  no,
  head: `[1,${call},${ok},${text.length}]`,
  text,
  from: 0,
  to: text.length,
});

export const abortItem = (no: number, why: "deadline" | "cpu"): BatchItem => ({
  no,
  head: `[2,${no},${why === "cpu" ? 1 : 0}]`,
  text: "",
  from: 0,
  to: 0,
});

/**
 * A batch as the guest's `pump` takes it: its head, and the texts. What lies end to end in one text stays one: each is
 * copied once, into the isolate. `most`: events that may run at once.
 */
export function composeBatch(
  nowMs: number,
  seed: string,
  most: number,
  items: readonly BatchItem[],
): [head: string, ...texts: string[]] {
  const texts: string[] = [];
  let heads = "";
  let text = "";
  let from = 0;
  let to = 0;
  for (const item of items) {
    heads = heads === "" ? item.head : `${heads},${item.head}`;
    if (item.from === to && item.text === text) to = item.to;
    else {
      if (from < to) texts.push(text.slice(from, to));
      ({ text, from, to } = item);
    }
  }
  if (from < to) texts.push(text.slice(from, to));
  return [`[${nowMs},"${seed}",${most},[${heads}]]`, ...texts];
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
