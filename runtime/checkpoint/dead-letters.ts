import { WatchfireError } from "../errors.ts";
import { type DeadLetter, type DeadLetterSummary, emptyBatch, type SpilledEvent } from "./batch.ts";
import { type CheckpointStore, type DeadLetterPage, resourceOf, type StoredView } from "./store.ts";

/** Puts a dead letter back at the end of its lane; a running dispatcher is one. */
export interface Replayer {
  replay(letter: DeadLetter): Promise<void>;
  drop(letter: DeadLetter): Promise<void>;
}

/**
 * What the commands and the endpoints do with dead letters: over a running dispatcher, or over the store alone
 * while no runtime holds it. Unknown ids are refused, all of the call with them, with WF_CHECKPOINT_NO_DEAD_LETTER.
 */
export class DeadLetters {
  private readonly store: CheckpointStore;
  private readonly replayer: Replayer;
  /** One call after the other, so that none takes a letter that another has just taken. */
  private last: Promise<void> = Promise.resolve();
  private lastDrop: Promise<void> = Promise.resolve();
  /** The letters of each call that is in `last`. */
  private readonly waiting = new Set<readonly string[]>();

  constructor(store: CheckpointStore, replayer: Replayer = new OfflineReplayer(store)) {
    this.store = store;
    this.replayer = replayer;
  }

  /** Oldest first, a page at a time. */
  list(page?: DeadLetterPage): Promise<DeadLetterSummary[]> {
    return this.store.deadLetters(page);
  }

  async show(letter: string): Promise<DeadLetter> {
    const found = await this.store.deadLetter(letter);
    if (!found)
      throw new WatchfireError("WF_CHECKPOINT_NO_DEAD_LETTER", { what: "no dead letter has this id", actual: letter });
    return found;
  }

  /**
   * Delivers again, as a first attempt flagged as redelivered. Letters of functions and triggers that are gone are
   * refused with WF_CHECKPOINT_LETTER_HOMELESS, and all of the call with them. Those whose bodies were dropped are
   * refused with WF_CHECKPOINT_LETTER_EMPTY: the object's state of today would be another event.
   */
  replay(letters: readonly string[]): Promise<void> {
    return this.next(letters, async () => {
      for (const letter of await this.replayable(letters)) await this.replayer.replay(letter);
    });
  }

  /** The letters as `replay` puts them back, each in the view that takes it. It is refused as that is, and does nothing. */
  async replayable(letters: readonly string[]): Promise<DeadLetter[]> {
    const found = await this.all(letters);
    const empty = found.find(({ bodyDropped }) => bodyDropped);
    if (empty) {
      const what = `the body of a dead letter of function ${empty.function} was dropped`;
      throw new WatchfireError("WF_CHECKPOINT_LETTER_EMPTY", { what, actual: empty.letter });
    }
    const views = await this.store.views();
    return found.map((letter) => ({ ...letter, view: homeOf(letter, views).id }));
  }

  /** Forgets for good. A replay of others is not waited for: it may wait for a full store, in which this makes room. */
  drop(letters: readonly string[]): Promise<void> {
    const call = async () => {
      for (const letter of await this.all(letters)) await this.replayer.drop(letter);
    };
    if ([...this.waiting].some((taken) => taken.some((letter) => letters.includes(letter)))) {
      return this.next(letters, call);
    }
    const done = this.lastDrop.then(call);
    this.lastDrop = done.catch(() => undefined);
    return done;
  }

  /** @throws WatchfireError WF_CHECKPOINT_NO_DEAD_LETTER where one of them is not there */
  all(letters: readonly string[]): Promise<DeadLetter[]> {
    return Promise.all([...new Set(letters)].map((letter) => this.show(letter)));
  }

  private next(letters: readonly string[], call: () => Promise<void>): Promise<void> {
    const taken = [...letters];
    this.waiting.add(taken);
    const done = Promise.all([this.last, this.lastDrop])
      .then(call)
      .finally(() => this.waiting.delete(taken));
    this.last = done.catch(() => undefined);
    return done;
  }
}

/** The view that takes it: the one it was of, or the one that its trigger has now. */
function homeOf({ letter, function: name, trigger, ...of }: DeadLetter, views: readonly StoredView[]): StoredView {
  const resource = resourceOf(of);
  const home = views.find((it) => it.function === name && it.trigger === trigger && it.resource === resource);
  if (home) return home;
  const what = `function ${name} has no trigger ${trigger} any more that could take it`;
  throw new WatchfireError("WF_CHECKPOINT_LETTER_HOMELESS", { what, actual: letter });
}

/** A dead letter as the spilled event that replays it. */
export function replayedEvent(letter: DeadLetter, sequence: number): SpilledEvent {
  const { view, function: name, trigger, namespace, uid, resourceVersion, type, id, flags, deletedBy } = letter;
  const { body, oldBody, receivedAt } = letter;
  const event = { view, function: name, trigger, namespace, name: letter.name, uid, resourceVersion, type, id, flags };
  return { ...event, deletedBy, body, oldBody, receivedAt, sequence, replayed: true, redelivered: true };
}

/** Moves the letter to the end of its function's spill, where the runtime finds it when it starts. */
export class OfflineReplayer implements Replayer {
  private readonly store: CheckpointStore;

  constructor(store: CheckpointStore) {
    this.store = store;
  }

  async replay(letter: DeadLetter): Promise<void> {
    let last = 0;
    for (const { sequence } of await this.store.spillHeaders(letter.function)) last = sequence;
    const event = replayedEvent(letter, last + 1);
    await this.store.commit({ ...emptyBatch, spill: [event], droppedDeadLetters: [letter.letter] });
  }

  async drop(letter: DeadLetter): Promise<void> {
    await this.store.commit({ ...emptyBatch, droppedDeadLetters: [letter.letter] });
  }
}
