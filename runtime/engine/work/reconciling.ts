import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock, Random } from "../../base/clock.ts";
import { type KeyHeader, runSequence, type SpilledEvent, type SpillHeader } from "../../journal/batch.ts";
import type { StoredView } from "../../journal/checkpoint.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import type { Commits } from "../commit/commits.ts";
import type { Look, Runner } from "../delivery/delivery.ts";
import type { EngineLog, EngineObserver } from "../delivery/observer.ts";
import type { KeyOf } from "../filter/key-rule.ts";
import type { OwnState } from "../own-state/own-state.ts";
import type { RecordedStart } from "../redelivery/started-before.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { Shard } from "../state/sharding.ts";
import { Attempts } from "./attempt.ts";
import type { EventMaker } from "./event.ts";
import { KeyBackoff } from "./key-backoff.ts";
import { KeyLane } from "./key-lane.ts";
import { KeyMapper } from "./key-mapper.ts";
import { KeyQueue } from "./key-queue.ts";
import { type KeySource, PendingEditEvents, Primary } from "./primary.ts";
import { Resync } from "./resync.ts";
import { msUntil } from "./retry.ts";
import type { Spill } from "./spill.ts";
import { settleRun } from "./waiting-keys.ts";

/** The parts that all functions of a dispatcher share. */
export interface SharedParts {
  readonly runner: Runner;
  readonly clock: Clock;
  /** Spreads retries. */
  readonly random: Random;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
}

export interface ReconcilingParts extends SharedParts {
  readonly manifest: FunctionManifest;
  readonly startedBefore: Iterable<RecordedStart>;
  readonly commits: Commits;
  /** Fetches an object whose body the store does not have. */
  readonly look: Look;
  /** The part of the function that runs here; `undefined` for the whole function. */
  readonly shard: Shard | undefined;
}

/** The stored state of a function. */
interface OnRecord {
  /** The known objects of the trigger without `key`. */
  readonly primary: KnownObjects;
  /** Whether a condition of that trigger reads the previous object. */
  readonly comparesChanges: boolean;
  /** By view, for triggers with `key`. */
  readonly rules: ReadonlyMap<number, KeyOf>;
  /** The names of triggers and schedules, by identity. */
  readonly names: ReadonlyMap<string, string>;
  /** The rows of its keys. */
  readonly keys: readonly KeyHeader[];
  /** Events on disk whose states are known already. */
  readonly replays: readonly (SpillHeader | SpilledEvent)[];
  /** The view that holds the position of its resync. */
  readonly resync: Pick<StoredView, "id" | "cursors">;
  readonly maker: EventMaker;
  readonly spill: Spill;
  /** Is charged for the event loop's time that its keys take. */
  readonly time: LoopAccount;
  /** The entries that its handler keeps. */
  readonly state: OwnState;
  readonly source: KeySource;
}

/** The parts of a function's dispatch that only mode Reconcile has. */
export interface Reconciling {
  readonly keys: KeyQueue;
  readonly wakes: KeyMapper;
  readonly resync: Resync;
  /** The trigger without `key`. */
  readonly trigger: string;
}

/** Builds the parts from the manifest and the stored state. */
export async function reconcilingOf(parts: ReconcilingParts, on: OnRecord): Promise<Reconciling> {
  const { primary: objects, rules, names, keys, resync, maker, spill, time, state, source } = on;
  const { manifest, commits, runner, clock, random, observer, log, look } = parts;
  const pendingEdits = new PendingEditEvents(
    on.replays.filter((each) => each.view === objects.id && !each.redelivered),
    spill,
  );
  const primary = new Primary(objects, look, pendingEdits, names, on.comparesChanges);
  const backoff = new KeyBackoff(clock, random);
  const attempts = new Attempts(
    { manifest, usesOldObject: false },
    { backoff, spill, commits, runner, time, clock, random, observer, log, look, state },
  );
  const nextSequence = () => maker.nextSequence();
  const queue = new KeyQueue({ primary, source, attempts, backoff, commits, clock, spill, nextSequence });
  await restore(queue, keys, parts, primary);
  return {
    keys: queue,
    wakes: new KeyMapper(rules, primary, queue, { shard: parts.shard, time }),
    resync: new Resync({
      clock,
      random,
      commits,
      view: resync.id,
      cursor: resync.cursors[0],
      everyMs: () => attempts.code.manifest.delivery.resyncMs,
      keys: () => primary.timedKeys(),
      wake: (key) => queue.wake(key, { type: "Resync" }),
      time,
      share: queue.share,
    }),
    trigger: objects.trigger.name,
  };
}

/** The number of keys that are restored in one turn of the event loop. */
const keysInATurn = 1_024;

/** Restores the keys that were to run when the last process ended, with the attempt of a run that had begun. */
async function restore(
  queue: KeyQueue,
  keys: readonly KeyHeader[],
  { startedBefore, clock }: ReconcilingParts,
  primary: Primary,
): Promise<void> {
  const { objects } = primary;
  const begun = new Map<number, RecordedStart>();
  for (const event of startedBefore) {
    const sequence = event.view === objects.id ? runSequence(event.id) : undefined;
    if (sequence !== undefined) begun.set(sequence, event);
  }
  const monotonic = clock.monotonic();
  for (const [index, header] of keys.entries()) {
    const { sequence, namespace, name, receivedAt, notBefore = 0, pending, redelivered } = header;
    if (index % keysInATurn === keysInATurn - 1) await nextTurn();
    const run = begun.get(sequence);
    begun.delete(sequence);
    const counts = { ...pending, begun: Math.max(pending.begun, run?.attempt ?? 0) };
    const wokenAt = { wall: clock.now(), monotonic };
    // A record without an attempt is of an ended run: it only says which state was shown.
    const wasCutOff = run !== undefined && run.attempt > 0;
    const redeliveryRisk = redelivered || wasCutOff ? "persisted" : "none";
    const lane = new KeyLane(primary, `${namespace}/${name}`, sequence, counts, wokenAt, redeliveryRisk, run);
    queue.restore(lane, msUntil(notBefore, receivedAt, clock));
  }
  // Runs without a row had ended, or an edit has delivered the changes that woke them.
  for (const run of begun.values()) settleRun(run, objects);
}
