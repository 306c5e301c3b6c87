import { type ObjectMeta, objectKey } from "../../../informer/scan/change.ts";
import { mostRows } from "../../commit/commit-share.ts";
import type { KeyOf, WakesNext, MappedKeys as WhomItWakes } from "../../filter/key-rule.ts";
import { wakesNobody } from "../../filter/reason.ts";
import type { CountedKeys, KnownObjects } from "../../state/known-objects.ts";
import type { Shard } from "../../state/shard.ts";
import type { Conclusion, EventSink } from "../attempts.ts";
import type { LaneEvent } from "../event.ts";
import type { Waking } from "./causes.ts";
import type { KeyQueue } from "./key-queue.ts";
import type { Primary } from "./primary.ts";

/** What of the most keys that one event woke still counts at the next event. */
const fading = 0.9;

/** From a change to the keys that it wakes. Its event ends in the commit that makes their rows durable. */
export class KeyMapper implements EventSink {
  /** By view; none for the trigger without `key`. */
  private readonly rules: ReadonlyMap<number, KeyOf>;
  private readonly primary: Primary;
  private readonly keys: KeyQueue;
  private readonly owns: (key: string) => boolean;
  /** Keys that one event woke, the most of the last few. */
  private widest = 0;

  /** @param shard undefined: every key is this one's to wake */
  constructor(rules: ReadonlyMap<number, KeyOf>, primary: Primary, keys: KeyQueue, shard: Shard | undefined) {
    this.owns = (key) => shard?.owns(key) ?? true;
    this.rules = rules;
    this.primary = primary;
    this.keys = keys;
  }

  /**
   * Whether an event waits until there are fewer keys. That of an object which is reconciled itself does not: it wakes one key, and
   * is what shows that this has an object.
   */
  refuses({ view, type }: LaneEvent): boolean {
    return (this.rules.has(view.id) || type === "Scheduled") && this.keys.isFull;
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

  take(event: LaneEvent, body: Buffer, oldBody: Buffer | undefined): Conclusion {
    if (this.refuses(event) || this.keys.share.isSpent) return { type: "not-begun" };
    const rule = this.rules.get(event.view.id);
    const counted = event.view.countedFor(event.key);
    const named = rule ? this.keysOf(rule, event, body, oldBody, counted) : new Set<string>();
    const isForAll = event.type === "Scheduled" || (rule && isForgotten(rule, event.view, counted, body, oldBody));
    if (!rule && event.type !== "Scheduled") this.primary.saw(event.key);
    const own = rule ? named : new Set([event.key]);
    const keys = isForAll ? new Set([...this.primary.keys(), ...(named ?? [])]) : own;
    if (!keys) return { type: "terminal", outcome: "filtered" };
    this.widest = Math.max(keys.size, this.widest * fading);
    const cause = causeOf(event);
    for (const key of keys) this.keys.wake(key, cause);
    return { type: "terminal", outcome: "ok" };
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
    const now: WhomItWakes = body.length > 0 ? rule.of({ namespace, body }) : { heldBack: wakesNobody };
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
