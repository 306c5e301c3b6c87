import type { Clock } from "../../base/clock.ts";
import { isNewer } from "../../base/resource-version.ts";
import type { Cause, NewDeadLetter, StartedEvent } from "../../journal/batch.ts";
import type { FunctionManifest } from "../../manifest/function.ts";
import type { Commits } from "../commit/commits.ts";
import type { Delivery, HandlerError, Newest, Outcome, Runner } from "../delivery/delivery.ts";
import type { EngineObserver } from "../delivery/observer.ts";
import type { History } from "../history/history.ts";
import { isRedelivered } from "./attempt.ts";
import { causeAlone, type KeyLane, unknownVersion, type Waking } from "./key-lane.ts";
import type { Primary } from "./primary.ts";

interface KeyRunsParts {
  readonly primary: Primary;
  /** Of triggers and schedules, by the identity that causes have. */
  readonly names: ReadonlyMap<string, string>;
  readonly commits: Commits;
  readonly runner: Runner;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly history: History;
}

/** How a run ended by itself. */
type FinishedRun = Exclude<Outcome, { readonly type: "interrupted" | "unbegun" }>;

/** How a run leaves its key. */
export type RunEnd =
  | { readonly type: "finished"; readonly outcome: FinishedRun; readonly newest: Newest | undefined }
  /** What ran it has died: again, uncounted. */
  | { readonly type: "interrupted" }
  /** As if it had not been made. */
  | { readonly type: "unbegun" };

/** Callbacks of one run. */
interface RunListener {
  /** Asked when the run's record is written: whether the run must not begin any more. */
  isPaused(): boolean;
  /** Has what follows from the run's end done, once a commit has room for it. Until then the run counts as one that goes on. */
  soon(work: () => void): void;
  /** Called once, never before `run` returns. */
  ended(end: RunEnd): void;
}

/** One function's runs of keys: what each is told, the record that it begins, the handler. */
export class KeyRuns {
  manifest: FunctionManifest;
  private readonly parts: KeyRunsParts;
  private running = 0;
  private failures = 0;
  private lastAt: number | undefined;

  constructor(manifest: FunctionManifest, parts: KeyRunsParts) {
    this.manifest = manifest;
    this.parts = parts;
  }

  /** For the status. */
  counts() {
    return { lastEventAt: this.lastAt, failures: this.failures, inFlight: this.running };
  }

  /** Has the runner give back what has not begun. */
  recall(): void {
    this.parts.runner.recall(this.manifest.name);
  }

  /** Runs a key once, as it stands. The run is on record before its handler begins. */
  run(lane: KeyLane, newest: Newest | undefined, listener: RunListener): void {
    const { commits } = this.parts;
    const started = this.startedOf(lane, newest);
    commits.begin(started, (row) => {
      if (listener.isPaused()) {
        commits.ended();
        commits.withdraw(row, started);
        listener.ended({ type: "unbegun" });
      } else this.give(lane, newest, row, started, listener);
    });
  }

  private give(
    lane: KeyLane,
    newest: Newest | undefined,
    row: number,
    started: StartedEvent,
    listener: RunListener,
  ): void {
    const { commits, runner, clock } = this.parts;
    if (lane.journalRow !== undefined) commits.settle(lane.journalRow, started);
    lane.journalRow = row;
    lane.begun++;
    let hasBegun = false;
    const begins = () => {
      hasBegun = true;
      this.begins(lane);
    };
    const hasEnded = (outcome: Outcome) => {
      if (hasBegun) this.running--;
      commits.ended();
      if (outcome.type === "unbegun") {
        lane.begun--;
        // Where a run of it may have begun before, the record stays: it is all that says so.
        if (lane.attempts === 0 && !lane.doubt) {
          lane.journalRow = undefined;
          commits.withdraw(row, started);
        }
        listener.ended({ type: "unbegun" });
        return;
      }
      this.lastAt = clock.now();
      if (outcome.type === "interrupted") {
        lane.begun--;
        lane.doubt = true;
        listener.ended({ type: "interrupted" });
        return;
      }
      this.note(lane, outcome, newest);
      this.settle(row, started, newest);
      lane.journalRow = undefined;
      lane.doubt = false;
      listener.ended({ type: "finished", outcome, newest });
    };
    runner.give(this.deliveryOf(lane, newest), {
      begins,
      ended: (outcome) => listener.soon(() => hasEnded(outcome)),
    });
  }

  /**
   * The run is over. The row that is written of its key in this commit, or is gone with it, says all that the record would. A state
   * that is newer than what is known stays on record until its own event comes, which another mode would tell.
   */
  private settle(row: number, started: StartedEvent, newest: Newest | undefined): void {
    const { commits, primary } = this.parts;
    const { key, id } = started;
    const known = primary.view.stands(key);
    const { uid, resourceVersion: shown } = newest ?? {};
    if (shown !== undefined && uid !== undefined && known?.uid === uid && isNewer(shown, known.resourceVersion))
      primary.view.settle({ key, id, uid, row, shown, comesAgain: true });
    else commits.settle(row, started);
  }

  /** A run that was given up, as it is kept. */
  letterOf(lane: KeyLane, newest: Newest | undefined, error: HandlerError): NewDeadLetter {
    const { view } = this.parts.primary;
    const { namespace, name, attempts } = lane;
    const { apiVersion, kind } = view.trigger;
    const { uid = "", resourceVersion: version = unknownVersion } = newest ?? {};
    const body = newest?.body ?? view.nameAlone({ meta: { namespace, name, uid, resourceVersion: version } });
    const failedAt = this.parts.clock.now();
    return {
      ...lane.stored(view),
      type: typeOf(newest),
      uid,
      resourceVersion: version,
      body,
      apiVersion,
      kind,
      attempts,
      error: { ...error },
      failedAt,
    };
  }

  private note(lane: KeyLane, outcome: FinishedRun, newest: Newest | undefined): void {
    const { observer, history, clock, primary } = this.parts;
    const { view } = primary;
    observer.handled?.(view.functionName, view.trigger.name, outcome.durationMs);
    const meta = { resourceVersion: newest?.resourceVersion ?? unknownVersion };
    const of = { view, id: lane.runId, key: lane.key, type: typeOf(newest), meta } as const;
    history.ran(of, lane.attempts, outcome, clock.now());
    if (outcome.type === "ok") return;
    this.failures++;
    observer.event?.(view.functionName, view.trigger.name, typeOf(newest), "retry");
  }

  private begins(lane: KeyLane): void {
    const { observer, clock, primary } = this.parts;
    const { functionName, trigger } = primary.view;
    this.running++;
    observer.attempt?.(functionName, trigger.name, clock.monotonic() - lane.wokenAt.monotonic);
    if (isFlagged(lane)) observer.flagged?.(functionName, trigger.name);
  }

  private startedOf({ key, id, begun }: KeyLane, newest: Newest | undefined): StartedEvent {
    const { view } = this.parts.primary;
    const version = newest?.resourceVersion ?? unknownVersion;
    // Of a deletion nothing else is inferred for the object's own events.
    return { view: view.id, key, id, resourceVersion: version, type: "Deleted", attempt: begun + 1 };
  }

  /** A cause as the handler is told it: no namespace of a cluster-scoped object, and the trigger as it is called now. */
  private told(waking: Waking): Cause {
    const { namespace, uid: _, told: __, replaced: ___, trigger, ...cause } = causeAlone(waking);
    return { ...cause, ...(trigger && { trigger: this.nameOf(trigger) }), ...(namespace && { namespace }) };
  }

  /** What the trigger of a cause is called now; one that is gone has the name that it had first. */
  nameOf(identity: string): string {
    return this.parts.names.get(identity) ?? identity;
  }

  private deliveryOf(lane: KeyLane, newest: Newest | undefined): Delivery {
    const { functionName, trigger } = this.parts.primary.view;
    const { apiVersion, kind } = trigger;
    const { namespace, name, runId, attempts, causes } = lane;
    return {
      function: functionName,
      trigger: trigger.name,
      id: runId,
      type: typeOf(newest),
      object: { apiVersion, kind, namespace, name, uid: newest?.uid ?? "" },
      resourceVersion: newest?.resourceVersion ?? unknownVersion,
      attempt: attempts,
      redelivered: isFlagged(lane),
      flags: {},
      body: newest?.body ?? Buffer.alloc(0),
      causes: causes.map((cause) => this.told(cause)),
      seen: causes.flatMap(({ seen = [] }) => seen),
      timeoutMs: this.manifest.delivery.timeoutMs,
    };
  }
}

const typeOf = (newest: Newest | undefined) => (newest ? "Modified" : "Deleted");

const isFlagged = ({ doubt, attempts }: KeyLane): boolean =>
  isRedelivered({ doubt: doubt ? "noted" : "none", attempts });
