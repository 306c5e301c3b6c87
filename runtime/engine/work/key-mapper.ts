import { type ObjectMeta, objectKey } from "../../informer/scan/change.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import { mostRows } from "../commit/commit-share.ts";
import type { KeyOf, MappedKeys, WakesNext } from "../filter/key-rule.ts";
import { wakesNobody } from "../filter/reason.ts";
import type { CountedKeys, KnownObjects } from "../state/known-objects.ts";
import type { Shard } from "../state/sharding.ts";
import type { Conclusion, EventSink } from "./attempt.ts";
import type { LaneEvent } from "./event.ts";
import type { Waking } from "./key-lane.ts";
import type { KeyQueue } from "./key-queue.ts";
import type { Primary } from "./primary.ts";

/** The factor by which the maximum of keys woken per event decays at each event. */
const fading = 0.9;

/**
 * The number of keys that are woken in one piece: as many as a change of an object may wake, and their rows fill a commit's
 * share.
 */
const keysInAPiece = 100;

/**
 * Milliseconds of the event loop that a key's row takes until it is committed, and each cause in it. A row with 16 causes was
 * measured at 43 us, on two busy cores (2026-11-27).
 */
const rowMs = 0.015;
const causeMs = 0.002;

/** Maps a change to the keys that it wakes. The event ends in the commit that makes their rows durable. */
export class KeyMapper implements EventSink {
  /** The rules by view; the trigger without `key` has no rule. */
  private readonly rules: ReadonlyMap<number, KeyOf>;
  private readonly primary: Primary;
  private readonly keys: KeyQueue;
  private readonly owns: (key: string) => boolean;
  private readonly time: LoopAccount;
  /** The most keys that one of the last few events woke. */
  private widest = 0;

  /** @param shard the shard whose keys it wakes; `undefined` for all keys */
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
   * Whether an event waits until there are fewer keys. An event of a reconciled object never does: it wakes one key, and shows
   * that this key has an object.
   */
  refuses({ objects, kind }: LaneEvent): boolean {
    return (this.rules.has(objects.id) || kind === "tick") && this.keys.isFull;
  }

  /** As many as fill a commit's share, estimated from earlier events. Surplus events are returned. */
  get atOnce(): number {
    if (this.keys.share.isSpent) return 0;
    return Math.max(1, Math.floor(mostRows / Math.max(1, this.widest)));
  }

  /** A change may move an object from one key to another, which wakes both. */
  wantsOld({ objects }: LaneEvent): boolean {
    return this.rules.has(objects.id);
  }

  /** Whether the metadata of the earlier state tells its keys. Every stored body has it, whatever manifest it is of. */
  isMetadataEnough({ objects }: LaneEvent): boolean {
    return this.rules.get(objects.id)?.readsMetadataAlone ?? false;
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
    // After a kill between two pieces the event is repeated, and wakes all of them.
    const wake = ([piece, ...more]: readonly (readonly string[])[]): void => {
      if (piece) this.wakePiece(piece, cause);
      if (more.length === 0) ended({ type: "terminal", outcome: "ok" });
      else this.keys.share.soon(() => this.time.soon(() => (isPaused() ? ended({ type: "not-begun" }) : wake(more))));
    };
    wake(piecesOf([...keys]));
  }

  /** Returns the keys that an event wakes; `undefined` if it wakes no key. */
  private wokenBy(
    event: LaneEvent,
    { body, oldBody }: { readonly body: Buffer; readonly oldBody: Buffer | undefined },
  ): ReadonlySet<string> | undefined {
    const rule = this.rules.get(event.objects.id);
    const counted = event.objects.countedFor(event.key);
    if (rule?.isForAll) return this.forAll(counted);
    const named = rule ? this.keysOf(rule, event, body, oldBody, counted) : new Set<string>();
    if (event.kind === "tick") return new Set(this.primary.timedKeys());
    const isForAll = rule && isForgotten(rule, event.objects, counted, body, oldBody);
    if (!rule) this.primary.saw(event.key);
    const own = rule ? named : new Set([event.key]);
    return isForAll ? new Set([...this.primary.keys(), ...(named ?? [])]) : own;
  }

  /** Returns the keys of all objects, and those that an earlier rule named of the changed object. */
  private forAll(counted: CountedKeys | undefined): ReadonlySet<string> {
    const named = counted?.isByThisRule ? [] : (counted?.keys ?? []).filter(this.owns);
    return new Set([...this.primary.timedKeys(), ...named.map((key) => this.primary.canonicalKey(key))]);
  }

  /** Wakes keys. If there are several, the function is charged for them; a single key costs no more than any event. */
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

  /** Returns the keys that a change of an object wakes, given its current body; for commands. */
  keysFor(
    objects: KnownObjects,
    object: Pick<ObjectMeta, "namespace" | "name">,
    body: Buffer | undefined,
  ): ReadonlySet<string> {
    const rule = this.rules.get(objects.id);
    if (!rule) return new Set([objectKey(object)]);
    if (rule.isForAll) return this.forAll(undefined);
    const found = body && rule.of({ namespace: object.namespace, body });
    return new Set(found && "keys" in found ? found.keys.map((key) => this.primary.canonicalKey(key)) : []);
  }

  /** Returns the keys that a change would wake that leaves the object with this body; for commands. */
  next(objects: KnownObjects, object: Pick<ObjectMeta, "namespace" | "name">, body: Buffer): WakesNext {
    const rule = this.rules.get(objects.id);
    const key = objectKey(object);
    if (!rule) return { now: { keys: [key] }, left: [] };
    if (rule.isForAll) return { now: { keys: [...this.primary.timedKeys()] }, left: [] };
    const canonical = (keys: readonly string[] = []) => [
      ...new Set(keys.map((each) => this.primary.canonicalKey(each))),
    ];
    const found = rule.of({ namespace: object.namespace, body });
    const now = "keys" in found ? { keys: canonical(found.keys) } : found;
    const known = canonical(objects.knownState(key)?.keys);
    return { now, left: known.filter((each) => !("keys" in now && now.keys.includes(each))) };
  }

  /** Returns the keys that a change wakes; `undefined` if it wakes no key, and then sets the event's reason. */
  private keysOf(
    rule: KeyOf,
    event: LaneEvent,
    body: Buffer,
    oldBody: Buffer | undefined,
    counted: CountedKeys | undefined,
  ): Set<string> | undefined {
    const { namespace } = event.meta;
    const now: MappedKeys = body.length > 0 ? rule.of({ namespace, body }) : { heldBack: wakesNobody };
    // The previous state may be lost, but its keys are recorded. Keys named by an earlier rule are woken because the object
    // moved.
    const { keys: recorded = [], isByThisRule = true } = counted ?? {};
    const before = oldBody ? rule.of({ namespace, body: oldBody }) : { keys: recorded };
    const earlier = { keys: isByThisRule ? [] : recorded };
    const keys = [now, before, earlier].flatMap((each) => ("keys" in each ? each.keys.filter(this.owns) : []));
    if (keys.length > 0) return new Set(keys.map((key) => this.primary.canonicalKey(key)));
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
 * Whether the keys that an object mapped to before a change are unknown, because its last state is lost, or has too little for a
 * newer rule.
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

function causeOf({
  kind,
  replayed,
  type,
  objects,
  meta,
  flags,
  attempts,
  redeliveryRisk,
  journalRow,
}: LaneEvent): Waking {
  const { namespace, name, resourceVersion } = meta;
  const trigger = objects.identity;
  if (kind === "tick") return { type, trigger };
  // An event that an edit made of a waiting key is the change that woke the key.
  if (replayed && flags.reason !== "edited") return { type: "Replay" };
  const uid = type === "Deleted" && { uid: meta.uid };
  const delivered = (attempts > 0 || redeliveryRisk !== "none") && { delivered: true };
  return {
    type,
    trigger,
    namespace,
    name,
    ...uid,
    ...delivered,
    hasBegun: attempts > 0 || journalRow !== undefined,
    seen: { trigger: objects.trigger.name, type, object: meta, resourceVersion, flags },
  };
}
