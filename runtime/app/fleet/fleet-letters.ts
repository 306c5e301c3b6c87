import type { DeadLetter, DeadLetterSummary } from "../../checkpoint/batch.ts";
import type { DeadLetters } from "../../checkpoint/dead-letters.ts";
import { deadLetterPageSize } from "../../checkpoint/store.ts";
import { WatchfireError } from "../../errors.ts";
import type { DeadLetterDesk } from "../../observe/endpoints.ts";

/** The dead letters of all slots that this replica has, slot by slot; the ID of one begins with its slot. */
export function fleetLetters(of: () => ReadonlyMap<number, DeadLetters>): DeadLetterDesk {
  const unknown = (id: string) =>
    new WatchfireError("WF_CHECKPOINT_NO_DEAD_LETTER", {
      what: "no slot of this replica has a dead letter of this id",
      actual: id,
    });
  const place = (id: string) => {
    const [slot, letter] = id.split("-");
    const letters = slot === undefined ? undefined : of().get(Number(slot));
    if (!letters || letter === undefined) throw unknown(id);
    return { slot: Number(slot), letters, letter };
  };
  const named = <T extends DeadLetterSummary>(slot: number, letter: T): T => ({
    ...letter,
    letter: `${slot}-${letter.letter}`,
  });
  /** Nothing is done where one of them is unknown. */
  const each = async (ids: readonly string[], work: (letters: DeadLetters, ids: string[]) => Promise<void>) => {
    const placed = ids.map(place);
    await Promise.all(placed.map(({ letters, letter }) => letters.show(letter)));
    for (const [letters, own] of Map.groupBy(placed, (it) => it.letters)) {
      await work(
        letters,
        own.map(({ letter }) => letter),
      );
    }
  };
  return {
    async list({ after, function: name }) {
      const from = after === undefined ? undefined : place(after);
      const found: DeadLetterSummary[] = [];
      for (const [slot, letters] of [...of()].toSorted(([a], [b]) => a - b)) {
        if (from && slot < from.slot) continue;
        const limit = deadLetterPageSize - found.length;
        if (limit === 0) break;
        const page = { function: name, after: slot === from?.slot ? from.letter : undefined, limit };
        found.push(...(await letters.list(page)).map((letter) => named(slot, letter)));
      }
      return found;
    },
    async show(id): Promise<DeadLetter> {
      const { slot, letters, letter } = place(id);
      return named(slot, await letters.show(letter));
    },
    replay: (ids) => each(ids, (letters, own) => letters.replay(own)),
    drop: (ids) => each(ids, (letters, own) => letters.drop(own)),
  };
}
