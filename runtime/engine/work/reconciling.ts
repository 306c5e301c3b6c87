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
import type { RecordedStart } from "../redelivery/started-before.ts";
import type { KnownObjects } from "../state/known-objects.ts";
import type { Shard } from "../state/shard.ts";
import { Attempts } from "./attempt.ts";
import type { EventMaker } from "./event.ts";
import { KeyBackoff } from "./key-backoff.ts";
import { KeyLane } from "./key-lane.ts";
import { KeyMapper } from "./key-mapper.ts";
import { KeyQueue } from "./key-queue.ts";
import { Primary, UntoldStates } from "./primary.ts";
import { Resync } from "./resync.ts";
import { msUntil } from "./retry.ts";
import type { Spill } from "./spill.ts";
import { settleRun } from "./waiting-keys.ts";

interface ReconcilingParts {
  readonly manifest: FunctionManifest;
  readonly startedBefore: Iterable<RecordedStart>;
  readonly commits: Commits;
  readonly runner: Runner;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
  readonly look: Look;
  readonly shard: Shard | undefined;
}

/** What a function has on record. */
interface OnRecord {
  /** Of the trigger without `key`. */
  readonly primary: KnownObjects;
  /** By view, of those whose trigger has `key`. */
  readonly rules: ReadonlyMap<number, KeyOf>;
  /** Of triggers and schedules, by identity. */
  readonly names: ReadonlyMap<string, string>;
  /** Rows that stand for its keys. */
  readonly keys: readonly KeyHeader[];
  /** Events on disk that tell what is known of their objects. */
  readonly replays: readonly (SpillHeader | SpilledEvent)[];
  /** The view that holds the position of its resync. */
  readonly resync: Pick<StoredView, "id" | "cursors">;
  readonly maker: EventMaker;
  readonly spill: Spill;
  /** On which goes what its keys take of the loop. */
  readonly time: LoopAccount;
}

/** The part of a function's dispatch that mode Reconcile has. */
export interface Reconciling {
  readonly keys: KeyQueue;
  readonly wakes: KeyMapper;
  readonly resync: Resync;
  /** The trigger without `key`. */
  readonly trigger: string;
  /** Says whether a namespace's objects are known. To be set before it starts. */
  isSettledIn: (namespace: string) => boolean;
  readonly untold: UntoldStates;
}

/** Builds it from the manifest and what the store has. */
export async function reconcilingOf(parts: ReconcilingParts, on: OnRecord): Promise<Reconciling> {
  const { primary: view, rules, names, keys, resync, maker, spill, time } = on;
  const { manifest, commits, runner, clock, random, observer, log, look } = parts;
  const untold = new UntoldStates(
    on.replays.filter((each) => each.view === view.id && !each.redelivered),
    spill,
  );
  const primary = new Primary(view, look, untold, names, (namespace) => reconciling.isSettledIn(namespace));
  const backoff = new KeyBackoff(clock, random);
  const attempts = new Attempts(
    { manifest, usesOldObject: false },
    { backoff, spill, commits, runner, time, clock, random, observer, look },
  );
  const nextSequence = () => maker.nextSequence();
  const queue = new KeyQueue({ primary, attempts, backoff, commits, clock, log, spill, nextSequence });
  const reconciling: Reconciling = {
    keys: queue,
    wakes: new KeyMapper(rules, primary, queue, { shard: parts.shard, time }),
    resync: new Resync({
      clock,
      random,
      commits,
      view: resync.id,
      cursor: resync.cursors[0],
      everyMs: () => attempts.code.manifest.delivery.resyncMs,
      keys: () => primary.keys(),
      wake: (key) => queue.wake(key, { type: "Resync" }),
      time,
      share: queue.share,
    }),
    trigger: view.trigger.name,
    isSettledIn: () => false,
    untold,
  };
  await restore(queue, keys, parts, primary);
  return reconciling;
}

/** Keys that are put back in one turn of the event loop. */
const keysInATurn = 1_024;

/** Puts the keys back that were to run when the last process ended; of a run that had begun, with its attempt. */
async function restore(
  queue: KeyQueue,
  keys: readonly KeyHeader[],
  { startedBefore, clock }: ReconcilingParts,
  primary: Primary,
): Promise<void> {
  const { view } = primary;
  const begun = new Map<number, RecordedStart>();
  for (const event of startedBefore) {
    const sequence = event.view === view.id ? runSequence(event.id) : undefined;
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
    // One of no attempt has ended: it says which state was shown.
    const wasCutOff = run !== undefined && run.attempt > 0;
    const doubt = redelivered || wasCutOff ? "noted" : "none";
    const lane = new KeyLane(primary, `${namespace}/${name}`, sequence, counts, wokenAt, doubt);
    lane.journalRow = run?.row;
    lane.shown = run?.resourceVersion;
    queue.restore(lane, msUntil(notBefore, receivedAt, clock));
  }
  // Their rows are gone: those runs had ended, or an edit has told what had woken them.
  for (const run of begun.values()) settleRun(run, view);
}
