import { systemClock } from "../../runtime/base/clock.ts";
import type { Batch } from "../../runtime/journal/batch.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import type { Nats } from "../../runtime/journal/nats/connection.ts";
import { JetstreamJournal } from "../../runtime/journal/nats/journal.ts";
import { settle, VirtualClock } from "../virtual-clock.ts";
import type { Dice } from "./random.ts";
import type { WorldPlace, WorldStore } from "./world.ts";

/** A clock that stands still during requests to the server. */
class WaitingClock extends VirtualClock {
  /** Number of calls of the store that have not returned. */
  open = 0;

  override async quiet(): Promise<void> {
    await settle();
    while (this.open > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.open === 0) await settle();
    }
  }
}

const silent = { warn: () => {}, error: () => {} };

/** A place for a world's checkpoints: a slot of a real server, whose commits sometimes fail. */
export function onJetstream(nats: Nats, slot: string): WorldPlace & { close(): Promise<void> } {
  const clock = new WaitingClock();
  let last: Checkpoint<JetstreamJournal> | undefined;
  return {
    clock,
    setting: (setting) => ({ ...setting, holdsQueues: false }),
    async open(dice, { spillLimit }, committed) {
      const before = last;
      const opened = new Checkpoint(
        await JetstreamJournal.open({ nats, slot, clock: systemClock, log: silent, onLost: () => {} }),
      );
      last = opened;
      // Closed only now, because writes that a killed process had started may still arrive.
      await before?.close(false);
      return crashing(opened, { clock, dice, spillLimit, committed });
    },
    close: async () => last?.close(false),
  };
}

interface Crashing {
  readonly clock: WaitingClock;
  readonly dice: Dice;
  readonly spillLimit: number;
  readonly committed: () => void;
}

/**
 * The store, whose commits are interrupted by the end of the process and sometimes fail before they reach the server.
 */
function crashing(store: Checkpoint<JetstreamJournal>, { clock, dice, spillLimit, committed }: Crashing): WorldStore {
  let dead = false;
  const never = new Promise<never>(() => {});
  const counted = async <T>(work: Promise<T>): Promise<T> => {
    clock.open++;
    try {
      return await work;
    } catch (error) {
      if (dead) return never;
      throw error;
    } finally {
      clock.open--;
    }
  };
  const commit = async (batch: Batch): Promise<readonly string[]> => {
    if (dead) return never;
    if (dice.chance(0.02)) throw new Error("the server is away");
    const snapshot = dice.chance(0.05) ? store.journal.snapshot() : undefined;
    const ids = await counted(store.commit(batch));
    void (snapshot && counted(snapshot));
    if (dead) return never;
    committed();
    return ids;
  };
  return new Proxy(store, {
    get(target, key) {
      if (key === "commit") return commit;
      if (key === "dead") return dead;
      if (key === "disk") return target.journal.state;
      if (key === "spillLimit") return Math.min(spillLimit, target.spillLimit);
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const result: unknown = value.apply(target, args);
        return result instanceof Promise ? counted(result) : result;
      };
    },
    set(_, key, value) {
      if (key === "dead") dead = value;
      return key === "dead";
    },
  }) as unknown as WorldStore;
}
