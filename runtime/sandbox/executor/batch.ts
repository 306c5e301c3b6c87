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

export const eventItem = (no: number, text: string, oldText: string | undefined): Item => ({
  no,
  head: `[0,${no},${text.length},${oldText === undefined ? -1 : oldText.length}]`,
  text: oldText === undefined ? text : text + oldText,
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

/** The text of a batch, as the guest's `pump` reads it. */
export function composeBatch(nowMs: number, seed: string, items: readonly Item[]): string {
  let heads = "";
  let texts = "";
  for (const item of items) {
    heads = heads === "" ? item.head : `${heads},${item.head}`;
    texts += item.text;
  }
  return `[${nowMs},"${seed}",[${heads}]]\n${texts}`;
}

/**
 * How many items the next entry takes, by what the last ones cost. It begins with one, so that a function whose every
 * event breaks a limit never drags others along, and grows fourfold an entry.
 */
export class BatchSize {
  private itemMs = entryTargetMs;

  get items(): number {
    return Math.min(maxItems, Math.max(1, Math.floor(entryTargetMs / this.itemMs)));
  }

  /** Notes an entry of `items` that took `cpuMs`. */
  took(items: number, cpuMs: number): void {
    if (items > 0) this.itemMs = Math.max(cpuMs / items, this.itemMs / 4, 0.01);
  }
}
