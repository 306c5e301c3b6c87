import { WatchfireError } from "../../base/errors.ts";
import type { DeadLetterSummary } from "../../journal/batch.ts";
import { deadLetterPageSize } from "../../journal/checkpoint.ts";
import type { DeadLetters, WaitingReplay } from "../../journal/dead-letters.ts";
import type { DeadLetterService } from "../../observe/control-routes.ts";

/** Returns the prefix of the ids of a slot's dead letters. */
export const slotPrefix = (slot: number): string => `${slot}-`;

/**
 * The dead letters of all slots of this replica, slot by slot, with the slot's prefix in each id. `elsewhere`: describes who
 * holds a slot that is not here. `undefined` for a slot that the fleet does not have.
 */
export function fleetLetters(
  of: () => ReadonlyMap<number, DeadLetters>,
  elsewhere: (slot: number) => string | undefined,
): DeadLetterService {
  const slotOf = (id: string) => Number(/^(\d{1,4})-\d{1,15}$/.exec(id)?.[1]);
  const place = (id: string): { id: string; slot: number; letters: DeadLetters } => {
    const slot = slotOf(id);
    const letters = of().get(slot);
    if (letters) return { id, slot, letters };
    const owner = elsewhere(slot);
    if (owner !== undefined) {
      const hint = "ask that replica: its name begins with that of its host, which is its pod's";
      throw new WatchfireError("WF_LEASE_STANDBY", { what: `the dead letter's ${owner}`, actual: id, hint });
    }
    const what = "no slot of this replica has a dead letter of this id";
    throw new WatchfireError("WF_CHECKPOINT_NO_DEAD_LETTER", { what, actual: id });
  };
  const bySlot = (ids: readonly string[]): [DeadLetters, string[]][] =>
    [...Map.groupBy(ids.map(place), ({ letters }) => letters)].map(([letters, own]) => [
      letters,
      own.map(({ id }) => id),
    ]);
  return {
    async list({ after, function: name, isPart = false }) {
      const from = after === undefined ? undefined : isPart ? { slot: slotOf(after) } : place(after);
      const found: DeadLetterSummary[] = [];
      for (const [slot, letters] of [...of()].toSorted(([a], [b]) => a - b)) {
        if (from && slot < from.slot) continue;
        const limit = deadLetterPageSize - found.length;
        if (limit === 0) break;
        found.push(...(await letters.list({ function: name, after: slot === from?.slot ? after : undefined, limit })));
      }
      return found;
    },
    show: async (id) => place(id).letters.show(id),
    // If one slot refuses a letter, nothing is replayed in any slot.
    async replay(ids) {
      const placed = bySlot(ids);
      for (const [letters, own] of placed) await letters.assertReplayable(own);
      const waiting: WaitingReplay[] = [];
      for (const [letters, own] of placed) waiting.push(...(await letters.replay(own)));
      return waiting;
    },
    async drop(ids) {
      const placed = bySlot(ids);
      for (const [letters, own] of placed) await letters.assertThere(own);
      for (const [letters, own] of placed) await letters.drop(own);
    },
  };
}
