import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import { isChange } from "../manifest/function.ts";
import { resourceOf } from "../manifest/trigger-record.ts";
import { type Batch, type DeadLetter, type DeadLetterSummary, emptyBatch, type SpilledEvent } from "./batch.ts";
import type { Checkpoint, DeadLetterPage, StoredView } from "./checkpoint.ts";

/** Puts a dead letter back at the end of its key's queue. A running dispatcher implements it. */
export interface Replayer {
  /** Returns whether the letter's function is loaded. Otherwise the event waits on disk until it is. */
  replay(letter: DeadLetter): Promise<boolean>;
  drop(letter: DeadLetter): Promise<void>;
  /** A pending promise while a function is loaded or unloaded, which may retire views; `undefined` otherwise. */
  changing(functionName: string): Promise<unknown> | undefined;
}

/** Why a function is not loaded. */
export interface LoadFault {
  readonly code?: ErrorCode;
  readonly message: string;
}

/** Returns the first line of a fault's message, which begins with its code. */
export const reasonOf = ({ message }: Pick<LoadFault, "message">): string => message.split("\n", 1)[0] ?? "";

/** Events of replayed letters that wait on disk until their function is loaded, and why it is not, if that is known. */
export interface WaitingReplay extends Partial<LoadFault> {
  readonly function: string;
  readonly events: number;
}

/**
 * Operations of the commands and endpoints on dead letters: with a running dispatcher, or on the store alone while no runtime
 * uses it. A call with an unknown id fails as a whole with WF_CHECKPOINT_NO_DEAD_LETTER.
 */
export class DeadLetters {
  private readonly store: Checkpoint;
  private readonly replayer: Replayer;
  private readonly prefix: string;
  private readonly faultOf: (functionName: string) => LoadFault | undefined;
  /** Calls run one after the other, so that no call takes a letter that another has just taken. */
  private last: Promise<void> = Promise.resolve();
  private lastDrop: Promise<void> = Promise.resolve();
  /** The letters of every call in `last`. */
  private readonly waiting = new Set<readonly string[]>();

  /**
   * @param prefix of every letter's id in the store: the id of its slot, in a fleet
   * @param faultOf returns why a function that exists is not loaded; `undefined` for one that does not exist. Default: unknown
   */
  constructor(
    store: Checkpoint,
    replayer: Replayer = new OfflineReplayer(store),
    prefix = "",
    faultOf: (functionName: string) => LoadFault | undefined = () => undefined,
  ) {
    this.store = store;
    this.replayer = replayer;
    this.prefix = prefix;
    this.faultOf = faultOf;
  }

  /** Returns one page of dead letters, oldest first. */
  async list({ after, ...page }: DeadLetterPage = {}): Promise<DeadLetterSummary[]> {
    const from = after === undefined ? {} : { after: this.idOf(after) };
    return (await this.store.deadLetters({ ...page, ...from })).map((letter) => this.named(letter));
  }

  async show(letter: string): Promise<DeadLetter> {
    return this.named(await this.find(letter));
  }

  /**
   * Delivers letters again, each as a first attempt flagged as redelivered. If the function or trigger of one is gone, the whole
   * call fails with WF_CHECKPOINT_LETTER_HOMELESS. If the bodies of one were dropped, it fails with WF_CHECKPOINT_LETTER_EMPTY,
   * because the object's present state would be another event. An edit may take a trigger away during the call: the letters before
   * are replayed then, and it fails at the first one without a trigger.
   * @returns the events of functions that are not loaded
   */
  replay(letters: readonly string[]): Promise<readonly WaitingReplay[]> {
    return this.next(letters, async () => {
      const waiting: DeadLetter[] = [];
      for (const letter of await this.replayable(letters)) {
        const homed = await this.atHome(letter);
        if (!(await this.replayer.replay(homed))) waiting.push(homed);
      }
      return [...Map.groupBy(waiting, (letter) => letter.function)].map(([name, { length: events }]) => {
        return { function: name, events, ...this.faultOf(name) };
      });
    });
  }

  /** Checks letters as `replay` does, without replaying them. */
  async assertReplayable(letters: readonly string[]): Promise<void> {
    await this.replayable(letters);
  }

  /** @throws WatchfireError WF_CHECKPOINT_NO_DEAD_LETTER if one of them does not exist */
  async assertThere(letters: readonly string[]): Promise<void> {
    await this.all(letters);
  }

  /**
   * Deletes letters for good. Does not wait for a replay of other letters, which may itself wait for the room that this frees.
   */
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

  private next<T>(letters: readonly string[], call: () => Promise<T>): Promise<T> {
    const taken = [...letters];
    this.waiting.add(taken);
    const done = Promise.all([this.last, this.lastDrop])
      .then(call)
      .finally(() => this.waiting.delete(taken));
    this.last = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }

  /** Returns the stored letters, each with the view that will receive it. */
  private async replayable(letters: readonly string[]): Promise<DeadLetter[]> {
    const found = await this.all(letters);
    const empty = found.find(({ bodyDropped }) => bodyDropped);
    if (empty) {
      const what = `the body of a dead letter of function ${empty.function} was dropped`;
      throw new WatchfireError("WF_CHECKPOINT_LETTER_EMPTY", { what, actual: this.named(empty).letter });
    }
    const views = await this.store.views();
    return found.map((letter) => ({ ...letter, view: this.homeOf(letter, views).id }));
  }

  /** Returns the letter with the view that receives it now: an edit may have retired the one that was found before. */
  private async atHome(letter: DeadLetter): Promise<DeadLetter> {
    for (;;) {
      await this.replayer.changing(letter.function);
      const { id } = this.homeOf(letter, await this.store.views(letter.function));
      if (!this.replayer.changing(letter.function)) return { ...letter, view: id };
    }
  }

  /** Returns the view that receives the letter: its original view, or its trigger's present one. */
  private homeOf(letter: DeadLetter, views: readonly StoredView[]): StoredView {
    const { function: name, trigger } = letter;
    const resource = resourceOf(letter);
    const own = views.filter((it) => it.function === name);
    const ofIt = own.filter((it) => it.resource === resource);
    // The trigger may have been renamed.
    const home = ofIt.find(({ id }) => id === letter.view) ?? ofIt.find((it) => it.trigger === trigger);
    if (home) return home;
    const what = `function ${name} has no trigger ${trigger} any more that could take it`;
    const hint = `${this.remedy(letter, own.length > 0)}, and replay the letter once the function is loaded, or drop it`;
    throw new WatchfireError("WF_CHECKPOINT_LETTER_HOMELESS", { what, actual: this.named(letter).letter, hint });
  }

  /** Says what gives a letter a view. A trigger that is put back takes it also after its old checkpoints were deleted. */
  private remedy({ function: name, trigger, kind }: DeadLetter, isFunctionThere: boolean): string {
    const fault = this.faultOf(name);
    if (fault?.code) return `fix function ${name}, which is not loaded (${reasonOf(fault)})`;
    if (isFunctionThere) return `put trigger ${trigger} back, under this name and for ${kind}`;
    return `put function ${name}, which is gone, back with trigger ${trigger}`;
  }

  private all(letters: readonly string[]): Promise<DeadLetter[]> {
    return Promise.all([...new Set(letters)].map((letter) => this.find(letter)));
  }

  private async find(letter: string): Promise<DeadLetter> {
    const isOurs = letter.startsWith(this.prefix);
    const found = isOurs ? await this.store.deadLetter(this.idOf(letter)) : undefined;
    if (found) return found;
    throw new WatchfireError("WF_CHECKPOINT_NO_DEAD_LETTER", { what: "no dead letter has this id", actual: letter });
  }

  private idOf(letter: string): string {
    return letter.slice(this.prefix.length);
  }

  private named<T extends DeadLetterSummary>(letter: T): T {
    return { ...letter, letter: this.prefix + letter.letter };
  }
}

/** Returns the spilled event that replays a dead letter. */
export function replayedEvent(letter: DeadLetter, sequence: number): SpilledEvent {
  const { view, function: name, trigger, namespace, uid, resourceVersion, type, id, flags, deletedBy } = letter;
  const { body, oldBody, form, receivedAt } = letter;
  const kind = isChange(type) ? "event" : "tick";
  const event = { view, function: name, trigger, namespace, name: letter.name, uid, resourceVersion, type, id, flags };
  return { kind, ...event, deletedBy, body, oldBody, form, receivedAt, sequence, replayed: true, redelivered: true };
}

/** Moves a letter to the end of its function's spill, where the runtime finds it at its next start. */
export class OfflineReplayer implements Replayer {
  private readonly store: Pick<Checkpoint, "spillHeaders">;
  private readonly commit: (batch: Batch) => Promise<unknown>;

  /** @param commit default: the store's; with a running dispatcher, the dispatcher's */
  constructor(store: Checkpoint, commit: (batch: Batch) => Promise<unknown> = (batch) => store.commit(batch)) {
    this.store = store;
    this.commit = commit;
  }

  async replay(letter: DeadLetter): Promise<false> {
    let last = 0;
    for (const { sequence } of await this.store.spillHeaders(letter.function)) last = sequence;
    const event = replayedEvent(letter, last + 1);
    await this.commit({ ...emptyBatch, spill: [event], droppedDeadLetters: [letter.letter] });
    return false;
  }

  changing(): undefined {
    return undefined;
  }

  async drop(letter: DeadLetter): Promise<void> {
    await this.commit({ ...emptyBatch, droppedDeadLetters: [letter.letter] });
  }
}
