import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import type { Journal } from "../../runtime/journal/journal.ts";
import { MemoryDisk, MemoryJournal } from "../../runtime/journal/memory/journal.ts";

/** Restrictions of a journal in memory. */
export interface Shape {
  readonly spillLimit?: number;
  readonly holdsQueues?: boolean;
  readonly writesBodies?: boolean;
}

class ShapedJournal extends MemoryJournal {
  override readonly capabilities: Journal["capabilities"];
  override readonly room: Journal["room"];

  constructor(disk: MemoryDisk, { spillLimit, holdsQueues, writesBodies }: Shape) {
    super(disk);
    this.capabilities = { queues: holdsQueues ?? true, bodies: writesBodies ?? true, packed: false };
    this.room = { spill: spillLimit ?? Number.POSITIVE_INFINITY, letters: Number.POSITIVE_INFINITY };
  }
}

/** A checkpoint in memory. Opening another one on the same disk is a restart. */
export class MemoryStore extends Checkpoint<MemoryJournal> {
  constructor(disk = new MemoryDisk(), shape: Shape = {}) {
    super(new ShapedJournal(disk, shape));
  }

  get disk(): MemoryDisk {
    return this.journal.state;
  }
}
