import { type ObjectMeta, objectKey } from "../../informer/scan/change.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import { mostRows } from "../commit/commit-share.ts";
import type { KeyOf, MappedKeys, WakesNext } from "../filter/key-rule.ts";
import { wakesNobody } from "../filter/reason.ts";
import type { CountedKeys, KnownObjects } from "../state/known-objects.ts";
import type { Shard } from "../state/shard.ts";
import type { Conclusion, EventSink } from "./attempt.ts";
import type { LaneEvent } from "./event.ts";
import type { Waking } from "./key-lane.ts";
import type { KeyQueue } from "./key-queue.ts";
import type { Primary } from "./primary.ts";

/** What of the most keys that one event woke still counts at the next event. */
const fading = 0.9;

/** Keys that are woken in one piece: as many as a change of an object may wake, and their rows fill a commit's share. */
const keysInAPiece = 100;

/**
 * Milliseconds of the loop that a key's row takes, and each cause in it, until it is committed. A row with 16 causes was measured at
 * 43 us, on two busy cores (2026-11-27).
 */
const rowMs = 0.015;
const causeMs = 0.002;

/** From a change to the keys that it wakes. Its event ends in the commit that makes their rows durable. */
export class KeyMapper implements EventSink {
  /** By view; none for the trigger without `key`. */
  private readonly rules: ReadonlyMap<number, KeyOf>;
  private readonly primary: Primary;
  private readonly keys: KeyQueue;
  private readonly owns: (key: string) => boolean;
  private readonly time: LoopAccount;
  /** Keys that one event woke, the most of the last few. */
  private widest = 0;

  /** @param shard undefined: every key is this one's to wake */
  constructor(
    rules: ReadonlyMap<number, KeyOf>,
    primary: Primary,
    keys: KeyQueue,
    { shard, time }: { readonly shard: Shard | undefined; readonly time: LoopAccount },
  ) {
    this.time = time;
    this.owns = (key) => shard?.owns(key) ?? true;
    this.rules = rules;
    this.primary = primary;
    this.keys = keys;
  }

  /**
   * Whether an event waits until there are fewer keys. That of an object which is reconciled itself does not: it wakes one key, and
   * is what shows that this has an object.
   */
  refuses({ view, kind }: LaneEvent): boolean {
    return (this.rules.has(view.id) || kind === "tick") && this.keys.isFull;
  }

  /** As many as fill a commit's share, by those before them. What of them is too many is given back. */
  get atOnce(): number {
    if (this.keys.share.isSpent) return 0;
    return Math.max(1, Math.floor(mostRows / Math.max(1, this.widest)));
  }

  /** A change may take an object from one key to another: both have changed. */
  wantsOld({ view }: LaneEvent): boolean {
    return this.rules.has(view.id);
  }

  take(
    event: LaneEvent,
    states: { readonly body: Buffer; readonly oldBody: Buffer | undefined },
    isPaused: () => boolean,
    ended: (conclusion: Conclusion) => void,
  ): void {
    if (this.refuses(event) || this.keys.share.isSpent) {
      ended({ type: "not-begun" });
      return;
    }
    const keys = this.wokenBy(event, states);
    if (!keys) {
      ended({ type: "terminal", outcome: "filtered" });
      return;
    }
    this.widest = Math.max(keys.size, this.widest * fading);
    const cause = causeOf(event);
    // After a kill between two pieces the event comes again, and wakes all of them.
    const wake = ([piece, ...more]: readonly (readonly string[])[]): void => {
      if (piece) this.wakePiece(piece, cause);
      if (more.length === 0) ended({ type: "terminal", outcome: "ok" });
      else this.keys.share.soon(() => this.time.soon(() => (isPaused() ? ended({ type: "not-begun" }) : wake(more))));
    };
    wake(piecesOf([...keys]));
  }

  /** Undefined where it wakes nobody. */
  private wokenBy(
    event: LaneEvent,
    { body, oldBody }: { readonly body: Buffer; readonly oldBody: Buffer | undefined },
  ): ReadonlySet<string> | undefined {
    const rule = this.rules.get(event.view.id);
    const counted = event.view.countedFor(event.key);
    const named = rule ? this.keysOf(rule, event, body, oldBody, counted) : new Set<string>();
    const isForAll = event.kind === "tick" || (rule && isForgotten(rule, event.view, counted, body, oldBody));
    if (!rule && event.kind !== "tick") this.primary.saw(event.key);
    const own = rule ? named : new Set([event.key]);
    return isForAll ? new Set([...this.primary.keys(), ...(named ?? [])]) : own;
  }

  /** Where a change wakes several keys, they go on the account. One that wakes a single key costs no more than any event. */
  private wakePiece(keys: readonly string[], cause: Waking): void {
    if (keys.length === 1) {
      for (const key of keys) this.keys.wake(key, cause);
      return;
    }
    const ms = this.time.measure("keys", () =>
      keys.reduce((sum, key) => {
        const causes = this.keys.wake(key, cause);
        return causes === 0 ? sum : sum + rowMs + causes * causeMs;
      }, 0),
    );
    this.time.charge("rows", ms);
  }

  /** The keys that a change of an object wakes, as it is now; for a person who asks. */
  keysFor(
    view: KnownObjects,
    object: Pick<ObjectMeta, "namespace" | "name">,
    body: Buffer | undefined,
  ): ReadonlySet<string> {
    const rule = this.rules.get(view.id);
    if (!rule) return new Set([objectKey(object)]);
    const found = body && rule.of({ namespace: object.namespace, body });
    return new Set(found && "keys" in found ? found.keys.map((key) => this.primary.home(key)) : []);
  }

  /** Whom a change of an object would wake that leaves it with this body; for a person who asks. */
  next(view: KnownObjects, object: Pick<ObjectMeta, "namespace" | "name">, body: Buffer): WakesNext {
    const rule = this.rules.get(view.id);
    const key = objectKey(object);
    if (!rule) return { now: { keys: [key] }, left: [] };
    const home = (keys: readonly string[] = []) => [...new Set(keys.map((each) => this.primary.home(each)))];
    const found = rule.of({ namespace: object.namespace, body });
    const now = "keys" in found ? { keys: home(found.keys) } : found;
    const known = home(view.stands(key)?.keys);
    return { now, left: known.filter((each) => !("keys" in now && now.keys.includes(each))) };
  }

  /** Undefined where it wakes nobody; the event then says why. */
  private keysOf(
    rule: KeyOf,
    event: LaneEvent,
    body: Buffer,
    oldBody: Buffer | undefined,
    counted: CountedKeys | undefined,
  ): Set<string> | undefined {
    const { namespace } = event.meta;
    const now: MappedKeys = body.length > 0 ? rule.of({ namespace, body }) : { heldBack: wakesNobody };
    // The state before is lost now and then, and its keys are not. Those that an earlier rule named are told that it moved.
    const { keys: noted = [], isByThisRule = true } = counted ?? {};
    const before = oldBody ? rule.of({ namespace, body: oldBody }) : { keys: noted };
    const earlier = { keys: isByThisRule ? [] : noted };
    const keys = [now, before, earlier].flatMap((each) => ("keys" in each ? each.keys.filter(this.owns) : []));
    if (keys.length > 0) return new Set(keys.map((key) => this.primary.home(key)));
    if (event.verdict) {
      const heldBack = "heldBack" in now ? now.heldBack : wakesNobody;
      event.verdict = { ...event.verdict, deliver: false, heldBack };
    }
    return undefined;
  }
}

function piecesOf(keys: readonly string[]): readonly (readonly string[])[] {
  const pieces: string[][] = [];
  for (let from = 0; from < keys.length; from += keysInAPiece) pieces.push(keys.slice(from, from + keysInAPiece));
  return pieces;
}

/**
 * Whether the keys that an object counted for before a change are unknown. Its last state is lost, or says too little for a
 * rule that is newer.
 */
function isForgotten(
  rule: KeyOf,
  { form }: KnownObjects,
  counted: CountedKeys | undefined,
  body: Buffer,
  oldBody: Buffer | undefined,
): boolean {
  if (!counted) return body.length === 0;
  if (counted.isByThisRule) return body.length === 0 && !counted.keys;
  return !(oldBody && (rule.readsMetadataAlone || form.keepsWholeObjects));
}

function causeOf({ replayed, type, view, meta, flags, attempts, doubt, journalRow }: LaneEvent): Waking {
  const { namespace, name, resourceVersion } = meta;
  const trigger = view.identity;
  if (type === "Scheduled") return { type, trigger };
  // One that an edit made of a waiting key is the change that had woken it.
  if (replayed && flags.reason !== "edited") return { type: "Replay" };
  const uid = type === "Deleted" && { uid: meta.uid };
  const told = (attempts > 0 || doubt !== "none") && { told: true };
  return {
    type,
    trigger,
    namespace,
    name,
    ...uid,
    ...told,
    hasBegun: attempts > 0 || journalRow !== undefined,
    seen: { trigger: view.trigger.name, type, object: meta, resourceVersion, flags },
  };
}
