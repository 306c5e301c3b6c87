import type { Batch } from "../../runtime/journal/batch.ts";
import type { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { MemoryStore, type Shape } from "../journal/memory-store.ts";
import type { Dice } from "./random.ts";

/** Options of a store without a spill limit, in which queues may wait as well. */
export const roomy = { spillLimit: Number.POSITIVE_INFINITY, holdsQueues: true };

/** A store whose commits take time, sometimes fail, and may be interrupted by the end of the process. */
export class CrashingStore extends MemoryStore {
  /** True once the process has ended: nothing is written, and no call returns. */
  dead = false;
  private readonly dice: Dice;
  private readonly committed: () => void;

  constructor(disk: MemoryDisk, dice: Dice, shape: Shape, committed: () => void) {
    super(disk, shape);
    this.dice = dice;
    this.committed = committed;
  }

  override async commit(batch: Batch): Promise<readonly string[]> {
    const late = this.dice.chance(0.5);
    const letters = late ? [] : await this.apply(batch);
    for (let turns = this.dice.below(3); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
    if (this.dead) return new Promise(() => {});
    if (!late) return letters;
    if (this.dice.chance(0.05)) throw new Error("disk full");
    return this.apply(batch);
  }

  private async apply(batch: Batch): Promise<readonly string[]> {
    if (this.dead) return [];
    const letters = await super.commit(batch);
    this.committed();
    return letters;
  }
}
