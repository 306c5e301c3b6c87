import type { DeadLetter, DeadLetterSummary } from "../../checkpoint/batch.ts";
import type { DeadLetters } from "../../checkpoint/dead-letters.ts";
import { deadLetterPageSize } from "../../checkpoint/store.ts";
import { WatchfireError } from "../../errors.ts";
import type { DeadLetterDesk } from "../../observe/endpoints.ts";

/** A letter among those of its slot. */
interface Place {
  readonly id: string;
  readonly slot: number;
  readonly letters: DeadLetters;
  readonly letter: string;
}

type Work = (letters: DeadLetters, own: readonly string[]) => Promise<unknown>;

/** The dead letters of all slots that this replica has, slot by slot; the ID of one begins with its slot. */
export function fleetLetters(of: () => ReadonlyMap<number, DeadLetters>): DeadLetterDesk {
  const place = (id: string): Place => {
    const [, slot, letter] = /^(\d{1,4})-(\d{1,15})$/.exec(id) ?? [];
    const letters = of().get(Number(slot));
    if (letters && letter !== undefined) return { id, slot: Number(slot), letters, letter };
    const what = "no slot of this replica has a dead letter of this id";
    throw new WatchfireError("WF_CHECKPOINT_NO_DEAD_LETTER", { what, actual: id });
  };
  /** Nothing is done in any slot where `judge` refuses a letter of one. */
  const each = async (ids: readonly string[], judge: Work, work: Work) => {
    const bySlot = Map.groupBy(ids.map(place), ({ letters }) => letters);
    for (const act of [judge, work]) {
      for (const [letters, placed] of bySlot) {
        const own = placed.map(({ letter }) => letter);
        await act(letters, own).catch((error) => refuse(error, placed));
      }
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
      const found = place(id);
      const letter = await found.letters.show(found.letter).catch((error) => refuse(error, [found]));
      return named(found.slot, letter);
    },
    replay: (ids) =>
      each(
        ids,
        (letters, own) => letters.replayable(own),
        (letters, own) => letters.replay(own),
      ),
    drop: (ids) =>
      each(
        ids,
        (letters, own) => letters.all(own),
        (letters, own) => letters.drop(own),
      ),
  };
}

const named = <T extends DeadLetterSummary>(slot: number, letter: T): T => ({
  ...letter,
  letter: `${slot}-${letter.letter}`,
});

/** A slot's refusal of one of its letters, by the ID that the letter has here. */
function refuse(error: unknown, placed: readonly Place[]): never {
  const refused = error instanceof WatchfireError && placed.find(({ letter }) => letter === error.detail.actual);
  if (!refused) throw error;
  throw new WatchfireError(error.code, { ...error.detail, actual: refused.id, cause: error });
}
