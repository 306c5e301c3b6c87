import type { Clock } from "../../base/clock.ts";
import type { KnownBody } from "../batch.ts";
import { MemoryJournal } from "../memory/journal.ts";
import { JetstreamBodies, stateOf } from "./bodies.ts";
import type { Nats } from "./connection.ts";
import { readSlot } from "./slot.ts";

/** Size of the cache of bodies, in bytes. Each body is read once. */
const cacheBytes = 1024 * 1024;

/** The contents of a slot at one moment, read without changing it. Its owner may continue meanwhile. */
export class SlotCopy extends MemoryJournal {
  private readonly bodies: JetstreamBodies;

  private constructor(disk: Awaited<ReturnType<typeof readSlot>>, bodies: JetstreamBodies) {
    super(disk);
    this.bodies = bodies;
  }

  /** @throws WatchfireError of the checkpoint section */
  static async read(nats: Nats, slot: string, clock: Clock): Promise<SlotCopy> {
    const disk = await readSlot({ nats, slot, clock });
    return new SlotCopy(disk, new JetstreamBodies(nats, clock, slot, cacheBytes));
  }

  /** Returns the stored body if it still belongs to the state that was read. */
  override async body(view: number, key: string): Promise<KnownBody | undefined> {
    const known = this.state.views.get(view)?.known.get(key);
    if (!known?.body) return undefined;
    const found = await this.bodies.get(this.bodies.subject(view, key));
    if (found?.state === stateOf(known)) return { bytes: found.bytes, isOlder: known.bodyIsOlder === true };
    return found && known.bodyIsOlder ? { bytes: found.bytes, isOlder: true } : undefined;
  }
}
