import { isNewer, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";
import type { Interest } from "../../informer/fanout/subscriber.ts";
import { type Change, type ObjectMembers, type ObjectMeta, objectKey } from "../../informer/scan/change.ts";
import type { KnownBody, KnownIdentity } from "../../journal/batch.ts";
import type { EventType, Trigger } from "../../manifest/function.ts";
import type { Commits } from "../commit/commits.ts";
import type { PositionHold } from "../commit/deferred-rows.ts";
import type { ConditionAnswer, Hearing } from "../filter/conditions.ts";
import type { Filter, PreviousState, Verdict } from "../filter/filter.ts";
import type { KeyOf } from "../filter/key-rule.ts";
import { type HeldBack, wasThere } from "../filter/reason.ts";
import type { History } from "../history/history.ts";
import {
  type Begun,
  type LastState,
  PossiblyDeliveredObjects,
  type RedeliveryRisk,
} from "../redelivery/possible-redeliveries.ts";
import { ByNamespace, namespaceOf } from "./by-namespace.ts";
import { interestOf } from "./interest.ts";
import { InterestedFunctions } from "./interested-functions.ts";
import { type ObjectState, standsBut } from "./object-state.ts";
import type { RecordForm } from "./record-form.ts";

/** What a view needs of an event. */
export interface ViewEvent {
  readonly type: EventType;
  readonly key: string;
  readonly meta: ObjectMeta;
  /** A Deleted that was found, not watched. */
  readonly lastKnown: boolean;
  /** Its own resourceVersion; of a Deleted that was found, the newest that it may have: nothing up to there is news. */
  readonly deletedBy: ResourceVersion;
  /** In which its resourceVersions count. */
  readonly epoch: number;
  readonly doubt: RedeliveryRisk;
  /** Whether its body is no state of its own, and so none to keep. */
  readonly isAsked: boolean;
  /** Where the object's members are in its body, where that is known. */
  readonly members?: ObjectMembers | undefined;
}

/** What a filter is told of an event beside its body. */
export type FilteredEventFields = Pick<ViewEvent, "type" | "key" | "doubt" | "members">;

/** What a view needs of an event that waits. */
interface ExpectedEvent extends Pick<ViewEvent, "type" | "key" | "deletedBy" | "epoch"> {
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
}

/** An attempt that is over. */
interface Settled extends Pick<Begun, "key" | "id" | "uid" | "row"> {
  /** The state that its handler has begun with, where that may be newer than what is known. */
  readonly shown: ResourceVersion | undefined;
  readonly comesAgain?: boolean;
}

interface KnownObjectsParts {
  readonly id: number;
  readonly functionName: string;
  readonly trigger: Trigger;
  readonly resource: string;
  /** Begins its event ids. */
  readonly identity: string;
  readonly filter: Filter;
  /** In which it writes records. */
  readonly form: RecordForm;
  /** Whether something compares with the previous object: its body then is always the newest. */
  readonly compares: boolean;
  readonly commits: Commits;
  /** Of its function. */
  readonly history: History;
  /** Under a trigger with `key`: whom a state counts for. */
  readonly keyOf?: KeyOf | undefined;
  /** Of all functions, by object. Default: this view's alone. */
  readonly holders?: InterestedFunctions<KnownObjects>;
}

/** Keys that an object counted for. */
export interface CountedKeys {
  /** `namespace/name` each; undefined where none were noted. */
  readonly keys: readonly string[] | undefined;
  /** Whether the trigger's `key` of today named them. */
  readonly isByThisRule: boolean;
}

/** What an event would come to. */
export interface Preview {
  readonly type: "Added" | "Modified";
  /** Undefined where the handler would see it. */
  readonly heldBack: HeldBack | undefined;
  readonly answers: readonly ConditionAnswer[];
}

/**
 * What one trigger knows of its objects: exactly what its handler has been told, or was spared by a filter. It changes
 * when an event leaves its lane, in the commit that makes the event terminal. Waiting events lie over it. So a later
 * event, or a list after a gap, is compared with where the object will stand.
 */
export class KnownObjects {
  readonly id: number;
  readonly functionName: string;
  readonly trigger: Trigger;
  readonly resource: string;
  readonly identity: string;
  readonly form: RecordForm;
  readonly history: History;
  private readonly keyOf: KeyOf | undefined;
  private readonly known: ByNamespace<KnownIdentity>;
  private readonly doubted: PossiblyDeliveredObjects;
  /** Objects whose events waited on disk and were left out, since the trigger selects them no more: uids by key. */
  private readonly untold = new Map<string, string>();
  /** Deleted objects by the namespace of their source ("" for all), in the order in which they went. */
  private readonly graves = new Map<string, { readonly key: string; readonly resourceVersion: ResourceVersion }[]>();
  private readonly waiting: ByNamespace<ObjectState & { count: number; readonly epoch: number }>;
  /** Namespaces with a source that could replay; undefined before that is known. */
  private scope: Set<string> | undefined;
  /** The epoch of each source's namespace. */
  private readonly epochs = new Map<string, number>();
  private readonly filter: Filter;
  private readonly compares: boolean;
  /** Whether an object that has never met the conditions leaves nothing here. */
  private readonly leavesStrangers: boolean;
  /** Where it is noted of which objects something is known; undefined where it lets none pass. */
  private readonly holders: InterestedFunctions<KnownObjects> | undefined;
  /** By which changes pass it that it would let pass; undefined where it lets none. */
  readonly interest: Interest | undefined;
  private readonly commits: Commits;

  constructor(parts: KnownObjectsParts) {
    const { id, functionName, trigger, resource, identity, filter, form, compares, commits, history, keyOf, holders } =
      parts;
    this.id = id;
    this.functionName = functionName;
    this.trigger = trigger;
    this.resource = resource;
    this.identity = identity;
    this.filter = filter;
    this.form = form;
    this.compares = compares;
    this.leavesStrangers = filter.judgesAlone && !compares;
    this.commits = commits;
    this.history = history;
    this.keyOf = keyOf;
    if (this.leavesStrangers && filter.demands && !history.tellsEach)
      this.holders = holders ?? new InterestedFunctions();
    this.interest = this.holders && interestOf(this, filter, this.holders);
    // One source brings all: one group is the quickest.
    const groupOf = trigger.namespaces.type === "all" ? () => "" : namespaceOf;
    this.known = new ByNamespace(groupOf);
    this.waiting = new ByNamespace(groupOf);
    this.doubted = new PossiblyDeliveredObjects(({ row, key, id }) => commits.settle(row, { view: this.id, key, id }));
  }

  /** Takes what the store has. */
  restore(key: string, identity: KnownIdentity): void {
    this.know(key, identity);
    if (identity.deleted) this.bury(key, identity.resourceVersion);
  }

  /** An attempt at this event had begun when the last process ended: a handler may know of it. */
  doubt(begun: Begun): void {
    this.holders?.add(begun.key, this);
    this.doubted.add(begun, this.known.get(begun.key), this.waiting.has(begun.key));
    this.release(begun.key);
  }

  /** Whether a handler may have seen this state of an object, or a newer one, in another event. */
  isOvertaken(key: string, resourceVersion: ResourceVersion): boolean {
    return this.doubted.isOvertaken(key, resourceVersion);
  }

  /** Whether a handler may have seen a newer state of an object than the one that is known. */
  hasShownNewer(key: string): boolean {
    return this.doubted.isSurpassed(key, this.stands(key));
  }

  /** An attempt is over. What it has shown of an object that is newer than what is known stays on record until that is known. */
  settle({ key, id, uid, row, shown, comesAgain = false }: Settled): void {
    const known = this.stands(key);
    if (!shown || !(known?.uid === uid ? isNewer(shown, known.resourceVersion) : comesAgain)) {
      this.commits.settle(row, { view: this.id, key, id });
      return;
    }
    // An event that waits may bring that state, in an epoch that is over by now.
    const next = this.waiting.get(key);
    const epoch = next && isUpTo(shown, next.resourceVersion) ? next.epoch : this.epochOf(key);
    const record = { view: this.id, key, id, type: "Modified", resourceVersion: shown, attempt: 0 } as const;
    this.doubt({ ...record, uid, epoch, row: comesAgain ? this.commits.uncount(row, record) : row });
  }

  /** The object as a list is compared with: where it will stand, unless it will be gone. */
  alive(key: string): LastState | undefined {
    const waiting = this.waiting.get(key);
    if (waiting) return waiting.deleted ? undefined : waiting;
    return this.doubted.alive(key, this.known.get(key));
  }

  /** Where the object will stand; undefined also of one that will be gone, in an epoch that is over. */
  standing(key: string): ObjectState | undefined {
    const waiting = this.waiting.get(key);
    if (!waiting) return this.known.get(key);
    return waiting.deleted && this.isOver(key, waiting.epoch) ? undefined : waiting;
  }

  /** Objects that will stand when all that waits is done, of one namespace or ("") of all. */
  *live(namespace: string): Iterable<readonly [string, LastState]> {
    for (const [key, object] of this.waiting.in(namespace)) if (!object.deleted) yield [key, object];
    for (const [key, object] of this.known.in(namespace)) {
      if (!object.deleted && !this.waiting.has(key)) yield [key, object];
    }
    for (const [key, object] of this.doubtedIn(namespace)) if (this.alive(key) === object) yield [key, object];
  }

  /** The key of any object that is on record or to come, also of one that is gone; undefined where there is none. */
  get anyKey(): string | undefined {
    for (const objects of [this.known, this.waiting, this.doubted]) for (const [key] of objects) return key;
    return undefined;
  }

  /** The namespaces in which objects are known, wait or had begun. */
  get namespaces(): ReadonlySet<string> {
    const doubted = [...this.doubted].map(([key]) => namespaceOf(key));
    return new Set([...this.known.namespaces, ...this.waiting.namespaces, ...doubted]);
  }

  /** The newest resourceVersion of all that is known, waits or had begun, deletions included, of one namespace or ("") of all. */
  newest(namespace: string): ResourceVersion | undefined {
    let newest: ResourceVersion | undefined;
    for (const objects of [this.known.in(namespace), this.waiting.in(namespace), this.doubtedIn(namespace)]) {
      for (const [, { resourceVersion }] of objects) {
        if (newest === undefined || isNewer(resourceVersion, newest)) newest = resourceVersion;
      }
    }
    return newest;
  }

  private *doubtedIn(namespace: string): Iterable<readonly [string, LastState]> {
    for (const each of this.doubted) if (namespace === "" || namespaceOf(each[0]) === namespace) yield each;
  }

  /** The object as all that has ended leaves it; undefined where there is none. */
  stands(key: string): KnownIdentity | undefined {
    const known = this.known.get(key);
    return known?.deleted ? undefined : known;
  }

  /** Notes that an event of the object is left out, since the trigger selects it no more. No handler is told of it. */
  leaveUntold(key: string, uid: string): void {
    if (this.stands(key)?.uid !== uid && !this.doubted.has(key)) this.untold.set(key, uid);
  }

  /** Whether all of the object's events were left out so in this process. */
  isUntold(key: string, uid: string): boolean {
    return this.untold.get(key) === uid && this.stands(key)?.uid !== uid && !this.doubted.has(key);
  }

  /** The object as it was deleted, where that is still on record. */
  gone(key: string): KnownIdentity | undefined {
    const known = this.known.get(key);
    return known?.deleted ? known : undefined;
  }

  /** Objects that stand, each with the keys that it counts for, where these are noted. */
  *counting(): Iterable<readonly [string, readonly string[]]> {
    for (const [key, { deleted, keys }] of this.known) if (!deleted && keys) yield [key, keys];
  }

  /** Whom the object counted for when its last event ended; undefined where nothing is noted. */
  countedFor(key: string): CountedKeys | undefined {
    const known = this.stands(key);
    return known && { keys: known.keys, isByThisRule: this.form.namesKeys(known.form) };
  }

  /** Whether all that the trigger knows of an object is that it never met the conditions, if it was ever there. */
  isStranger(key: string): boolean {
    return this.isUnkept(key) && !this.doubted.has(key);
  }

  /** Whether the server alone knows if an object was there before a change: nothing is kept of it. */
  isUnkept(key: string): boolean {
    return this.leavesStrangers && !this.known.has(key) && !this.waiting.has(key);
  }

  /** Whether a change is no concern of the function: nothing is known of the object, and it lacks what is demanded. */
  lets(change: Change): boolean {
    const { holders, filter } = this;
    return holders !== undefined && !holders.has(objectKey(change.meta), this) && filter.isLacking(change);
  }

  /** Why such a change is held back. */
  whyPassed(type: EventType): HeldBack {
    return this.filter.lacking(type);
  }

  /** Its function is unloaded. */
  close(): void {
    const { holders } = this;
    if (!holders) return;
    for (const objects of [this.known, this.waiting, this.doubted])
      for (const [key] of objects) holders.delete(key, this);
  }

  /** Whether the object is not known yet, and waits to be: its first event is still to end. */
  isToCome(key: string): boolean {
    return this.waiting.get(key)?.deleted === false && this.stands(key) === undefined;
  }

  isIdle(key: string): boolean {
    return !this.waiting.has(key);
  }

  /** Whether a verdict can be had without reading from the store, and perhaps in one piece. */
  judgesAtOnce(key: string): boolean {
    return !this.needsBody(key) && !this.filter.isLong;
  }

  private needsBody(key: string): boolean {
    const known = this.known.get(key);
    return this.filter.needsOldBody || (known !== undefined && this.filter.isOutdated(known.hash));
  }

  /** Notes that an event waits. */
  expect({ type, key, uid, resourceVersion, deletedBy, epoch }: ExpectedEvent): void {
    this.holders?.add(key, this);
    const deleted = type === "Deleted";
    const count = (this.waiting.get(key)?.count ?? 0) + 1;
    this.waiting.set(key, { uid, resourceVersion: deleted ? deletedBy : resourceVersion, deleted, count, epoch });
  }

  /** An event that waited does so no more. */
  leave(key: string): void {
    const waiting = this.waiting.get(key);
    if (!waiting) return;
    waiting.count--;
    if (waiting.count > 0) return;
    this.waiting.delete(key);
    this.release(key);
  }

  /**
   * The filter's verdict on an event that is next for its object. `body`: the event's own; of a deletion that was found, the
   * last one kept, undefined where none is.
   * @param admitted resolves when the next piece of judging may be done; asked once all that it takes is read
   */
  async judge(event: ViewEvent, body: Buffer | undefined, admitted: () => Promise<void>): Promise<Verdict> {
    if (event.lastKnown || !body) {
      const judged = (await this.isOlder(event.key)) ? undefined : body;
      await admitted();
      return this.filter.inPieces(this.filter.deletionPieces(judged, this.before(event.key)), admitted);
    }
    const old = event.type !== "Added" && this.needsBody(event.key) ? await this.body(event.key) : undefined;
    await admitted();
    const { type, key, doubt, members } = event;
    return this.filter.inPieces(this.filter.pieces(type, body, this.before(key, doubt), old, members), admitted);
  }

  /** The verdict on an event that has its own body; undefined where that takes more than one piece of work. */
  judgeAtOnce({ type, key, doubt, members }: FilteredEventFields, body: Buffer): Verdict | undefined {
    return this.filter.judgeAtOnce(type, body, this.before(key, doubt), undefined, members);
  }

  /** Whether the conditions hold for a state of an object, as for one that is new. */
  matches(key: string, body: Buffer): boolean {
    // Of a type that is none of its events no condition is asked.
    const type = this.trigger.events.includes("Added") ? "Added" : "Modified";
    return this.filter.judge(type, body, this.before(key), undefined).matched;
  }

  /** Why a change of a stranger is held back, where a quick look tells. */
  plainRefusal(change: Change): HeldBack | undefined {
    return this.filter.plainRefusal(change.type, change);
  }

  /** The condition that does not hold for a state of an object, where one is false. Nobody hears of errors. */
  refuses(change: Change): HeldBack | undefined {
    const plain = this.filter.plainRefusal("Added", change);
    if (plain) return plain;
    const { body, members } = change;
    const heldBack = this.filter.judgeAtOnce("Added", body, nothing, undefined, members, silent)?.heldBack;
    return heldBack?.type === "condition" ? heldBack : undefined;
  }

  private before(key: string, doubt: RedeliveryRisk = "none"): PreviousState {
    const known = this.known.get(key);
    // What may have been told last is not what is known.
    const doubted = doubt !== "none" || this.doubted.has(key);
    if (!known || known.deleted || doubted) return { ...unknown, doubted };
    const hash = this.form.comparesWith(known.form) ? known.hash : undefined;
    const matched = this.form.answers(known.form) ? known.matched : undefined;
    return { hash, matched, doubted };
  }

  /**
   * The event is terminal: what it says is known from the next commit on.
   * @param hold of an event that a position may not have passed
   * @returns whether none may pass it before `hold` has ended
   */
  apply(event: ViewEvent, body: Buffer, { hash, matched, deliver }: Verdict, hold?: PositionHold): boolean {
    const wasDoubted = this.doubted.has(event.key);
    this.doubted.end(event.type, event.key, event.meta.uid, {
      epoch: event.epoch,
      resourceVersion: event.meta.resourceVersion,
    });
    const isDeletion = event.type === "Deleted";
    const isSpared = this.leavesStrangers && !deliver && !wasDoubted && (isDeletion || !matched);
    if (isSpared && !this.known.has(event.key)) {
      this.release(event.key);
      return false;
    }
    if (!isDeletion) {
      const { uid } = event.meta;
      const before = this.known.get(event.key);
      const isChange = event.type === "Modified" && before?.uid === uid && !before.deleted;
      const keys = this.keysOf(event.meta, body);
      const known = this.stateOf(event.meta, hash, matched, keys);
      // A body of another form would pass for one of this.
      const later = isChange && !this.compares && !event.isAsked && before.form === known.form;
      if (hold && later && !deliver && !wasDoubted && standsBut(before, known)) {
        this.know(event.key, known);
        return this.commits.putKnownAtRest(this.id, event.key, known, this.form.keep(body), hold);
      }
      this.put(event.key, known, event.isAsked ? undefined : body, later);
      return false;
    }
    if (this.isOver(event.key, event.epoch)) {
      this.forget(event.key);
      return false;
    }
    const tombstone = {
      uid: event.meta.uid,
      resourceVersion: event.deletedBy,
      hash: "",
      deleted: true,
      matched: false,
      form: this.form.text,
    };
    this.know(event.key, tombstone);
    this.commits.putKnown(this.id, event.key, { ...tombstone, body: undefined });
    this.bury(event.key, event.deletedBy);
    return false;
  }

  /** Learns of an object that was there when the function was deployed, and is skipped. `at`: epoch milliseconds. */
  skip(key: string, meta: ObjectMeta, body: Buffer, at: number): void {
    const { hash, matched } = this.filter.judge("Added", body, this.before(key), undefined);
    this.put(key, this.stateOf(meta, hash, matched, this.keysOf(meta, body)), body);
    this.history.held({ view: this, key, type: "Added", meta }, wasThere, at);
  }

  /** What the next event would come to if it brought this body: changes nothing, and counts nothing. */
  async preview(key: string, { meta, body }: Pick<Change, "meta" | "body">): Promise<Preview> {
    const known = this.standing(key);
    const stands = known ? !known.deleted && known.uid === meta.uid : this.isUnkept(key);
    const type = stands ? "Modified" : "Added";
    const old = type === "Modified" && this.needsBody(key) ? await this.body(key) : undefined;
    const answers: ConditionAnswer[] = [];
    const hearing = { onError: () => {}, onAnswer: (answer: ConditionAnswer) => answers.push(answer) };
    const { heldBack } = this.filter.judge(type, body, this.before(key), old, undefined, hearing);
    return { type, heldBack, answers };
  }

  /**
   * Forgets the tombstones of a source's namespace that no replay from its low-water mark can reach; without a mark, all.
   * `caughtUp`: all that was received is behind the mark, and with it the tombstones that cannot be ordered against it.
   * Gives whether there were any.
   */
  exhume(namespace: string, lowWaterMark?: ResourceVersion, caughtUp = false): boolean {
    const graves = this.graves.get(namespace);
    if (!graves) return false;
    const isReachable = (resourceVersion: ResourceVersion) => {
      if (lowWaterMark === undefined) return false;
      return caughtUp ? isNewer(resourceVersion, lowWaterMark) : !isUpTo(resourceVersion, lowWaterMark);
    };
    const reachable = graves.findIndex(({ resourceVersion }) => isReachable(resourceVersion));
    const forgotten = graves.splice(0, reachable < 0 ? graves.length : reachable);
    for (const { key, resourceVersion } of forgotten) {
      const known = this.known.get(key);
      if (known?.deleted && known.resourceVersion === resourceVersion) this.forget(key);
    }
    if (graves.length === 0) this.graves.delete(namespace);
    return forgotten.length > 0;
  }

  /** What a deletion that was found shows of an object of which no body is kept: its name. */
  nameAlone({ meta }: Pick<ViewEvent, "meta">): Buffer {
    const { apiVersion, kind } = this.trigger;
    return Buffer.from(JSON.stringify({ apiVersion, kind, metadata: meta }));
  }

  /** The object's body as it is known; undefined where the one on record is older, or of a form that says less. */
  async body(key: string): Promise<Buffer | undefined> {
    const form = this.known.get(key)?.form;
    const body = await this.knownBody(key);
    return body && !body.isOlder ? this.form.body(body.bytes, form) : undefined;
  }

  /** The newest body that is left of the object, or what is true of it in each form: what a deletion that was found shows. */
  async lastBody(key: string): Promise<Buffer | undefined> {
    const form = this.known.get(key)?.form;
    const body = (await this.knownBody(key))?.bytes;
    return body && (this.form.body(body, form) ?? this.form.remains(body));
  }

  /** Whether a condition would judge an earlier state of the object than its last. */
  private async isOlder(key: string): Promise<boolean> {
    return this.trigger.matchConditions.length > 0 && ((await this.knownBody(key))?.isOlder ?? false);
  }

  private async knownBody(key: string): Promise<KnownBody | undefined> {
    return this.form.keepsBodies ? this.commits.body(this.id, key) : undefined;
  }

  /** Keeps no tombstone of other namespaces: no source of them is left that could replay. */
  retain(namespaces: ReadonlySet<string>): void {
    this.scope = new Set(namespaces);
    for (const namespace of [...this.graves.keys()]) if (!this.scope.has(namespace)) this.exhume(namespace);
  }

  /** A namespace has a source from now on, whose resourceVersions are of this epoch. */
  enter(namespace: string, epoch: number): void {
    this.scope?.add(namespace);
    this.epochs.set(namespace, epoch);
  }

  /** A complete list begins an epoch: what deletions before it say of resourceVersions counts no more. */
  begin(namespace: string, epoch: number): void {
    this.epochs.set(namespace, epoch);
    this.exhume(namespace);
  }

  private isOver(key: string, epoch: number): boolean {
    return epoch < this.epochOf(key);
  }

  /** In which an object's resourceVersions count now. */
  epochOf(key: string): number {
    return this.epochs.get(this.sourceOf(key)) ?? 0;
  }

  /** The namespace of the source that an object comes from. */
  private sourceOf(key: string): string {
    return this.trigger.namespaces.type === "all" ? "" : namespaceOf(key);
  }

  private bury(key: string, resourceVersion: ResourceVersion): void {
    const namespace = this.sourceOf(key);
    if (this.scope && !this.scope.has(namespace)) {
      this.forget(key);
      return;
    }
    const graves = this.graves.get(namespace);
    if (graves) graves.push({ key, resourceVersion });
    else this.graves.set(namespace, [{ key, resourceVersion }]);
  }

  private forget(key: string): void {
    this.known.delete(key);
    this.release(key);
    this.commits.putKnown(this.id, key, undefined);
  }

  private know(key: string, identity: KnownIdentity): void {
    this.holders?.add(key, this);
    this.known.set(key, identity);
  }

  private release(key: string): void {
    if (this.holders && this.isStranger(key)) this.holders.delete(key, this);
  }

  /** `later`: an older body is on record, which will do for a while. */
  private put(key: string, known: KnownIdentity, body: Buffer | undefined, later = false): void {
    this.know(key, known);
    const kept = body && this.form.keep(body);
    if (kept && later) this.commits.putKnownBodyLater(this.id, key, { ...known, body: kept });
    else this.commits.putKnown(this.id, key, { ...known, body: kept });
  }

  private stateOf(
    { uid, resourceVersion }: ObjectMeta,
    hash: string,
    matched: boolean,
    keys: readonly string[] | undefined,
  ): KnownIdentity {
    return { uid, resourceVersion, hash, deleted: false, matched, ...(keys && { keys }), form: this.form.text };
  }

  private keysOf({ namespace }: Pick<ObjectMeta, "namespace">, body: Buffer): readonly string[] | undefined {
    const found = this.keyOf?.of({ namespace, body });
    return found && ("keys" in found ? found.keys : []);
  }
}

/** What a filter is told of an object that was not known. */
const unknown = { hash: undefined, matched: undefined };
const nothing: PreviousState = { ...unknown, doubted: false };
const silent: Hearing = { onError: () => {} };
