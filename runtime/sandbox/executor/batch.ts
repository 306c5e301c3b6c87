/**
 * Target CPU time of one entry, in milliseconds. It is short so that a broken limit can be charged to the event that broke it.
 */
const entryTargetMs = 25;
/** Maximum number of items of one entry. Larger batches are no faster. */
const maxItems = 64;

/** One instruction for the guest. */
export interface BatchItem {
  /** Number of the event it belongs to. */
  readonly no: number;
  /** The item as JSON, for the batch's head. */
  readonly head: string;
  /** String that holds the item's text, in the range `from` to `to`. The lengths in the head refer to that range. */
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

/** An event that waits to be run. */
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
 * Composes a batch as arguments of the guest's `pump`: its head and its texts. Adjacent ranges of one string are passed as one
 * text, because each text is copied into the isolate. `most`: maximum number of events that may run at once.
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
 * Computes how many items the next entry takes, from the cost of earlier ones. Starts at one, so that a function of which every
 * event breaks a limit never interrupts other events, and grows at most fourfold per entry.
 */
export class BatchSize {
  private itemMs = entryTargetMs;
  /**
   * Number of events that the next entry takes beyond those that can begin at once: as many as began beyond that in recent
   * entries.
   */
  private beyond = maxItems;

  get items(): number {
    return Math.min(maxItems, Math.max(1, Math.floor(entryTargetMs / this.itemMs)));
  }

  /** Returns how many items may be events if `room` events can begin at once. */
  eventsIn(room: number): number {
    return room + this.beyond;
  }

  /** Records an entry of `items` that used `cpuMs`. */
  took(items: number, cpuMs: number): void {
    if (items > 0) this.itemMs = Math.max(cpuMs / items, this.itemMs / 4, 0.01);
  }

  /** Records that `began` of an entry's events began and `left` did not, when `room` could begin at once. */
  began(began: number, left: number, room: number): void {
    if (left > 0) this.beyond = Math.max(0, began - room);
    else if (began > room || this.beyond === 0) this.beyond = Math.min(maxItems, 4 * this.beyond + 1);
  }
}
