import { isNewer, isUpTo, type ResourceVersion } from "../../base/resource-version.ts";
import type { SkipRule } from "../../informer/fanout/subscriber.ts";
import { type Change, type ObjectMeta, objectKey } from "../../informer/scan/change.ts";
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
import {
  differsOnlyInVersion,
  type ExpectedEvent,
  type FilteredEventFields,
  type ObjectEvent,
  type ObjectState,
} from "./object-state.ts";
import type { RecordForm } from "./record-form.ts";
import { Subscribers, skipRuleOf } from "./subscribers.ts";

/** An attempt that has ended. */
interface Settled extends Pick<Begun, "key" | "id" | "uid" | "row"> {
  /** The state that its handler received, if that may be newer than the known state. */
  readonly shown: ResourceVersion | undefined;
  readonly comesAgain?: boolean;
}

interface KnownObjectsParts {
  readonly id: number;
  readonly functionName: string;
  readonly trigger: Trigger;
  readonly resource: string;
  /** Prefix of the trigger's event ids. */
  readonly identity: string;
  readonly filter: Filter;
  /** The form in which records are written. */
  readonly form: RecordForm;
  /** Whether a condition or changed field compares with the previous object: the stored body then is always the newest. */
  readonly compares: boolean;
  readonly commits: Commits;
  /** The function's history of filtered events and attempts. */
  readonly history: History;
  /** For a trigger with `key`: maps a state of an object to its keys. */
  readonly keyOf?: KeyOf | undefined;
  /** Index by object, shared by all functions of a dispatcher. Default: an index for this trigger alone. */
  readonly subscribers?: Subscribers<KnownObjects>;
}

/** The keys that an object mapped to. */
export interface CountedKeys {
  /** Each is `namespace/name`; `undefined` if they were not recorded. */
  readonly keys: readonly string[] | undefined;
  /** Whether the trigger's current `key` rule computed them. */
  readonly isByThisRule: boolean;
}

/** The event that a state of an object would cause, and the filter's verdict on it. */
export interface Preview {
  readonly type: "Added" | "Modified";
  /** `undefined` if the event would reach the handler. */
  readonly heldBack: HeldBack | undefined;
  readonly answers: readonly ConditionAnswer[];
}

/**
 * The objects that one trigger knows: exactly the states that its handler has received, or that a filter held back. A state
 * changes when an event leaves its lane, in the commit that makes the event terminal. Waiting events are an overlay: a later
 * event, or a list after a gap, is compared with the state that the object will have once they are done.
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
  private readonly possiblyDelivered: PossiblyDeliveredObjects;
  /** Uids by key of objects whose events were dropped from disk, because the trigger no longer selects the objects. */
  private readonly droppedUnselected = new Map<string, string>();
  /** Tombstones by the namespace of their source ("" for all namespaces), in the order of deletion. */
  private readonly tombstones = new Map<
    string,
    { readonly key: string; readonly resourceVersion: ResourceVersion }[]
  >();
  private readonly waiting: ByNamespace<ObjectState & { count: number; readonly epoch: number }>;
  /** Namespaces with a source that could replay; `undefined` until that is known. */
  private scope: Set<string> | undefined;
  /** The current epoch of each source's namespace. */
  private readonly epochs = new Map<string, number>();
  private readonly filter: Filter;
  private readonly compares: boolean;
  /** Whether an object that has never met the conditions gets no row. */
  private readonly omitsUnmatched: boolean;
  /** Index of the objects that this trigger knows; `undefined` if no change may be skipped without parsing. */
  private readonly subscribers: Subscribers<KnownObjects> | undefined;
  /** The value that the informer checks to skip changes for this trigger; `undefined` if it sees every change. */
  readonly skipRule: SkipRule | undefined;
  private readonly commits: Commits;

  constructor(parts: KnownObjectsParts) {
    const { trigger, filter, compares, commits, history, subscribers } = parts;
    this.id = parts.id;
    this.functionName = parts.functionName;
    this.trigger = trigger;
    this.resource = parts.resource;
    this.identity = parts.identity;
    this.filter = filter;
    this.form = parts.form;
    this.compares = compares;
    this.omitsUnmatched = filter.judgesAlone && !compares;
    this.commits = commits;
    this.history = history;
    this.keyOf = parts.keyOf;
    if (this.omitsUnmatched && filter.demands && !history.logsEach) this.subscribers = subscribers ?? new Subscribers();
    this.skipRule = this.subscribers && skipRuleOf(this, filter, this.subscribers);
    // A single source delivers all namespaces, so one group is fastest.
    const groupOf = trigger.namespaces.type === "all" ? () => "" : namespaceOf;
    this.known = new ByNamespace(groupOf);
    this.waiting = new ByNamespace(groupOf);
    this.possiblyDelivered = new PossiblyDeliveredObjects(({ row, key, id }) =>
      commits.settle(row, { view: this.id, key, id }),
    );
  }

  /** Loads one row of the store. */
  restore(key: string, identity: KnownIdentity): void {
    this.know(key, identity);
    if (identity.deleted) this.addTombstone(key, identity.resourceVersion);
  }

  /** Records that an attempt at this event had begun when the last process ended: a handler may have seen it. */
  addStartedAttempt(begun: Begun): void {
    this.subscribers?.add(begun.key, this);
    this.possiblyDelivered.add(begun, this.known.get(begun.key), this.waiting.has(begun.key));
    this.release(begun.key);
  }

  /** Whether a handler may have seen this state of an object, or a newer one, in another event. */
  isOvertaken(key: string, resourceVersion: ResourceVersion): boolean {
    return this.possiblyDelivered.isOvertaken(key, resourceVersion);
  }

  /** Whether a handler may have seen a newer state of an object than the known one. */
  hasShownNewer(key: string): boolean {
    return this.possiblyDelivered.isSurpassed(key, this.knownState(key));
  }

  /** Records that an attempt has ended. A state that the handler saw stays in the journal until the known state is as new. */
  settle({ key, id, uid, row, shown, comesAgain = false }: Settled): void {
    const known = this.knownState(key);
    if (!shown || !(known?.uid === uid ? isNewer(shown, known.resourceVersion) : comesAgain)) {
      this.commits.settle(row, { view: this.id, key, id });
      return;
    }
    // A waiting event may carry that state, in an epoch that has ended since.
    const next = this.waiting.get(key);
    const epoch = next && isUpTo(shown, next.resourceVersion) ? next.epoch : this.epochOf(key);
    const record = { view: this.id, key, id, type: "Modified", resourceVersion: shown, attempt: 0 } as const;
    this.addStartedAttempt({ ...record, uid, epoch, row: comesAgain ? this.commits.uncount(row, record) : row });
  }

  /** The object's state for comparison with a list: after all waiting events, or `undefined` if it will be deleted. */
  alive(key: string): LastState | undefined {
    const waiting = this.waiting.get(key);
    if (waiting) return waiting.deleted ? undefined : waiting;
    return this.possiblyDelivered.alive(key, this.known.get(key));
  }

  /** The object's state after all waiting events; also `undefined` if it will have been deleted in an epoch that has ended. */
  stateAfterQueue(key: string): ObjectState | undefined {
    const waiting = this.waiting.get(key);
    if (!waiting) return this.known.get(key);
    return waiting.deleted && this.isOver(key, waiting.epoch) ? undefined : waiting;
  }

  /** The objects that will exist after all waiting events, of one namespace or ("") of all. */
  *live(namespace: string): Iterable<readonly [string, LastState & Partial<KnownIdentity>]> {
    for (const [key, object] of this.waiting.in(namespace)) if (!object.deleted) yield [key, object];
    for (const [key, object] of this.known.in(namespace)) {
      if (!object.deleted && !this.waiting.has(key)) yield [key, object];
    }
    for (const [key, object] of this.possiblyDeliveredIn(namespace))
      if (this.alive(key) === object) yield [key, object];
  }

  /** The key of any object that is recorded or waits, deleted ones included; `undefined` if there is no such object. */
  get anyKey(): string | undefined {
    for (const objects of [this.known, this.waiting, this.possiblyDelivered]) for (const [key] of objects) return key;
    return undefined;
  }

  /** The namespaces of objects that are known, wait, or had an attempt begun. */
  get namespaces(): ReadonlySet<string> {
    const possiblyDelivered = [...this.possiblyDelivered].map(([key]) => namespaceOf(key));
    return new Set([...this.known.namespaces, ...this.waiting.namespaces, ...possiblyDelivered]);
  }

  /** The newest resourceVersion of all objects known, waiting or begun, deletions included, of one namespace or ("") of all. */
  newest(namespace: string): ResourceVersion | undefined {
    let newest: ResourceVersion | undefined;
    for (const objects of [this.known.in(namespace), this.waiting.in(namespace), this.possiblyDeliveredIn(namespace)]) {
      for (const [, { resourceVersion }] of objects) {
        if (newest === undefined || isNewer(resourceVersion, newest)) newest = resourceVersion;
      }
    }
    return newest;
  }

  private *possiblyDeliveredIn(namespace: string): Iterable<readonly [string, LastState]> {
    for (const each of this.possiblyDelivered) if (namespace === "" || namespaceOf(each[0]) === namespace) yield each;
  }

  /** The object's state after its last terminal event; `undefined` if it does not exist. */
  knownState(key: string): KnownIdentity | undefined {
    const known = this.known.get(key);
    return known?.deleted ? undefined : known;
  }

  /** Records that an event of the object is dropped undelivered, because the trigger no longer selects the object. */
  recordDroppedUnselected(key: string, uid: string): void {
    if (this.knownState(key)?.uid !== uid && !this.possiblyDelivered.has(key)) this.droppedUnselected.set(key, uid);
  }

  /** Whether all events of the object were dropped that way in this process. */
  isDroppedUnselected(key: string, uid: string): boolean {
    return (
      this.droppedUnselected.get(key) === uid && this.knownState(key)?.uid !== uid && !this.possiblyDelivered.has(key)
    );
  }

  /** The object's tombstone, if it is still recorded. */
  gone(key: string): KnownIdentity | undefined {
    const known = this.known.get(key);
    return known?.deleted ? known : undefined;
  }

  /** The existing objects with their recorded keys; objects without recorded keys are left out. */
  *counting(): Iterable<readonly [string, readonly string[]]> {
    for (const [key, { deleted, keys }] of this.known) if (!deleted && keys) yield [key, keys];
  }

  /** The keys that the object mapped to when its last event ended; `undefined` if no state is recorded. */
  countedFor(key: string): CountedKeys | undefined {
    const known = this.knownState(key);
    return known && { keys: known.keys, isByThisRule: this.form.namesKeys(known.form) };
  }

  /**
   * Whether no state of the object has met the conditions, and no handler may have seen it. False if the trigger stores such
   * objects, too.
   */
  hasNeverMatched(key: string): boolean {
    return this.mayExistUnstored(key) && !this.possiblyDelivered.has(key);
  }

  /**
   * Whether the object may exist although nothing is stored of it, so that only the server knows whether it existed before a
   * change.
   */
  mayExistUnstored(key: string): boolean {
    return this.omitsUnmatched && !this.known.has(key) && !this.waiting.has(key);
  }

  /** Whether the function may skip a change: the object is not recorded, and lacks the text that the filter requires. */
  maySkip(change: Change): boolean {
    const { subscribers, filter } = this;
    return subscribers !== undefined && !subscribers.has(objectKey(change.meta), this) && filter.isLacking(change);
  }

  /** The reason that the history shows for a skipped change. */
  skipReason(type: EventType): HeldBack {
    return this.filter.lacking(type);
  }

  /** Removes the trigger from the index when its function is unloaded. */
  close(): void {
    const { subscribers } = this;
    if (!subscribers) return;
    for (const objects of [this.known, this.waiting, this.possiblyDelivered])
      for (const [key] of objects) subscribers.delete(key, this);
  }

  /** Whether the object is unknown, and its first event waits. */
  isPendingCreate(key: string): boolean {
    return this.waiting.get(key)?.deleted === false && this.knownState(key) === undefined;
  }

  isIdle(key: string): boolean {
    return !this.waiting.has(key);
  }

  /** Whether the filter can judge without a read from the store, and likely in one piece of work. */
  judgesAtOnce(key: string): boolean {
    return !this.needsBody(key) && !this.filter.isLong;
  }

  private needsBody(key: string): boolean {
    const known = this.known.get(key);
    return this.filter.needsOldBody || (known !== undefined && this.filter.isOutdated(known.hash));
  }

  /** Records that an event waits. */
  expect({ type, key, uid, resourceVersion, deletedBy, epoch }: ExpectedEvent): void {
    this.subscribers?.add(key, this);
    const deleted = type === "Deleted";
    const count = (this.waiting.get(key)?.count ?? 0) + 1;
    this.waiting.set(key, { uid, resourceVersion: deleted ? deletedBy : resourceVersion, deleted, count, epoch });
  }

  /** Records that a waiting event has ended. */
  leave(key: string): void {
    const waiting = this.waiting.get(key);
    if (!waiting) return;
    waiting.count--;
    if (waiting.count > 0) return;
    this.waiting.delete(key);
    this.release(key);
  }

  /**
   * Returns the filter's verdict on the event that is next for its object.
   * @param body the event's own; for a deletion that was found, the last stored one, or `undefined` without one
   * @param admitted resolves when the next piece of judging may run; called once everything needed has been read
   */
  async judge(event: ObjectEvent, body: Buffer | undefined, admitted: () => Promise<void>): Promise<Verdict> {
    if (event.lastKnown || !body) {
      const judged = (await this.isOlder(event.key)) ? undefined : body;
      await admitted();
      const before = this.before(event.key, "none", event.meta.uid);
      return this.filter.inPieces(this.filter.deletionPieces(judged, before), admitted);
    }
    const old = event.type !== "Added" && this.needsBody(event.key) ? await this.body(event.key) : undefined;
    await admitted();
    const { type, key, redeliveryRisk, members } = event;
    return this.filter.inPieces(
      this.filter.pieces(type, body, this.before(key, redeliveryRisk), old, members),
      admitted,
    );
  }

  /** Returns the verdict on an event with its own body; `undefined` if judging takes more than one piece of work. */
  judgeAtOnce({ type, key, redeliveryRisk, members }: FilteredEventFields, body: Buffer): Verdict | undefined {
    return this.filter.judgeAtOnce(type, body, this.before(key, redeliveryRisk), undefined, members);
  }

  /** Whether the conditions hold for a state of an object, judged as if it were new. */
  matches(key: string, body: Buffer): boolean {
    // Conditions are not evaluated for a type that the trigger does not subscribe to.
    const type = this.trigger.events.includes("Added") ? "Added" : "Modified";
    return this.filter.judge(type, body, this.before(key), undefined).matched;
  }

  /** Returns why a change of an object that has never matched is held back, if the cheap checks can decide that. */
  plainRefusal(change: Change): HeldBack | undefined {
    return this.filter.plainRefusal(change.type, change);
  }

  /** Returns the condition that is false for a state of an object, if there is one. Evaluation errors are not reported. */
  refuses(change: Change): HeldBack | undefined {
    const plain = this.filter.plainRefusal("Added", change);
    if (plain) return plain;
    const verdict = this.filter.judgeAtOnce("Added", change.body, nothing, undefined, change.members, silent);
    return verdict?.heldBack?.type === "condition" ? verdict.heldBack : undefined;
  }

  private before(key: string, redeliveryRisk: RedeliveryRisk = "none", uid = this.knownState(key)?.uid): PreviousState {
    const known = this.known.get(key);
    // The last delivered state may differ from the recorded one, which may be of the next object of the name.
    const possiblyOutdated = redeliveryRisk !== "none" || this.possiblyDelivered.has(key);
    if (!known || known.deleted || known.uid !== uid || possiblyOutdated) return { ...unknown, possiblyOutdated };
    const hash = this.form.comparesWith(known.form) ? known.hash : undefined;
    const matched = this.form.answers(known.form) ? known.matched : undefined;
    return { hash, matched, possiblyOutdated };
  }

  /**
   * Applies a terminal event: its state is known from the next commit on.
   * @param hold holds the checkpoint back, for an event that a checkpoint cannot have passed
   * @returns whether the checkpoint must not pass the event before `hold` is released
   */
  apply(event: ObjectEvent, body: Buffer, { hash, matched, deliver }: Verdict, hold?: PositionHold): boolean {
    const wasPossiblyDelivered = this.possiblyDelivered.has(event.key);
    this.possiblyDelivered.end(event.type, event.key, event.meta.uid, {
      epoch: event.epoch,
      resourceVersion: event.meta.resourceVersion,
    });
    const isDeletion = event.type === "Deleted";
    const isSpared = this.omitsUnmatched && !deliver && !wasPossiblyDelivered && (isDeletion || !matched);
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
      // A stored body of another form would be taken for one of this form.
      const later = isChange && !this.compares && !event.isFetched && before.form === known.form;
      if (hold && later && !deliver && !wasPossiblyDelivered && differsOnlyInVersion(before, known)) {
        this.know(event.key, known);
        return this.commits.putKnownAtRest(this.id, event.key, known, this.form.keep(body), hold);
      }
      this.put(event.key, known, event.isFetched ? undefined : body, later);
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
    this.addTombstone(event.key, event.deletedBy);
    return false;
  }

  /** Records an object that existed when the function was deployed, and is skipped. `at` is in epoch milliseconds. */
  skip(key: string, meta: ObjectMeta, body: Buffer, at: number): void {
    const { hash, matched } = this.filter.judge("Added", body, this.before(key), undefined);
    this.put(key, this.stateOf(meta, hash, matched, this.keysOf(meta, body)), body);
    this.history.held({ objects: this, key, type: "Added", meta }, wasThere, at);
  }

  /** Returns the event that this body would cause if it were the next one. Changes no state and no counters. */
  async preview(key: string, { meta, body }: Pick<Change, "meta" | "body">): Promise<Preview> {
    const known = this.stateAfterQueue(key);
    const exists = known ? !known.deleted && known.uid === meta.uid : this.mayExistUnstored(key);
    const type = exists ? "Modified" : "Added";
    const old = type === "Modified" && this.needsBody(key) ? await this.body(key) : undefined;
    const answers: ConditionAnswer[] = [];
    const hearing = { onError: () => {}, onAnswer: (answer: ConditionAnswer) => answers.push(answer) };
    const { heldBack } = this.filter.judge(type, body, this.before(key), old, undefined, hearing);
    return { type, heldBack, answers };
  }

  /**
   * Prunes the tombstones of a source's namespace that a replay from its low-water mark cannot reach; without a mark, all.
   * @param caughtUp true if the mark has passed everything received; then tombstones that cannot be ordered against it go too
   * @returns whether any were pruned
   */
  pruneTombstones(namespace: string, lowWaterMark?: ResourceVersion, caughtUp = false): boolean {
    const tombstones = this.tombstones.get(namespace);
    if (!tombstones) return false;
    const isReachable = (resourceVersion: ResourceVersion) => {
      if (lowWaterMark === undefined) return false;
      return caughtUp ? isNewer(resourceVersion, lowWaterMark) : !isUpTo(resourceVersion, lowWaterMark);
    };
    const reachable = tombstones.findIndex(({ resourceVersion }) => isReachable(resourceVersion));
    const forgotten = tombstones.splice(0, reachable < 0 ? tombstones.length : reachable);
    for (const { key, resourceVersion } of forgotten) {
      const known = this.known.get(key);
      if (known?.deleted && known.resourceVersion === resourceVersion) this.forget(key);
    }
    if (tombstones.length === 0) this.tombstones.delete(namespace);
    return forgotten.length > 0;
  }

  /** Returns a body with the object's name alone, for a deletion that was found when no body is stored. */
  nameAlone({ meta }: Pick<ObjectEvent, "meta">): Buffer {
    const { apiVersion, kind } = this.trigger;
    return Buffer.from(JSON.stringify({ apiVersion, kind, metadata: meta }));
  }

  /**
   * Returns the stored body; `undefined` if it is older than the known state, or of a form that has less.
   * @param orMetadata if it is of such a form, returns its metadata, which every form has
   */
  async body(key: string, orMetadata = false): Promise<Buffer | undefined> {
    const form = this.known.get(key)?.form;
    const body = await this.knownBody(key);
    if (!body || body.isOlder) return undefined;
    return this.form.body(body.bytes, form) ?? (orMetadata ? this.form.remains(body.bytes) : undefined);
  }

  /** Returns the newest stored body, reduced to what holds in every form; a deletion that was found shows it. */
  async lastBody(key: string): Promise<Buffer | undefined> {
    const form = this.known.get(key)?.form;
    const body = (await this.knownBody(key))?.bytes;
    return body && (this.form.body(body, form) ?? this.form.remains(body));
  }

  /** Whether the stored body that a condition would judge is older than the object's last state. */
  private async isOlder(key: string): Promise<boolean> {
    return this.trigger.matchConditions.length > 0 && ((await this.knownBody(key))?.isOlder ?? false);
  }

  private async knownBody(key: string): Promise<KnownBody | undefined> {
    return this.form.keepsBodies ? this.commits.body(this.id, key) : undefined;
  }

  /** Prunes the tombstones of all other namespaces: no source of them is left that could replay. */
  retain(namespaces: ReadonlySet<string>): void {
    this.scope = new Set(namespaces);
    for (const namespace of [...this.tombstones.keys()])
      if (!this.scope.has(namespace)) this.pruneTombstones(namespace);
  }

  /** Records that a namespace has a source, whose resourceVersions belong to this epoch. */
  enter(namespace: string, epoch: number): void {
    this.scope?.add(namespace);
    this.epochs.set(namespace, epoch);
  }

  /** Begins an epoch at a complete list: resourceVersions of earlier deletions cannot be compared any more. */
  begin(namespace: string, epoch: number): void {
    this.epochs.set(namespace, epoch);
    this.pruneTombstones(namespace);
  }

  private isOver(key: string, epoch: number): boolean {
    return epoch < this.epochOf(key);
  }

  /** The epoch in which an object's resourceVersions are compared now. */
  epochOf(key: string): number {
    return this.epochs.get(this.sourceOf(key)) ?? 0;
  }

  /** The namespace of the source that delivers an object. */
  private sourceOf(key: string): string {
    return this.trigger.namespaces.type === "all" ? "" : namespaceOf(key);
  }

  private addTombstone(key: string, resourceVersion: ResourceVersion): void {
    const namespace = this.sourceOf(key);
    if (this.scope && !this.scope.has(namespace)) {
      this.forget(key);
      return;
    }
    const tombstones = this.tombstones.get(namespace);
    if (tombstones) tombstones.push({ key, resourceVersion });
    else this.tombstones.set(namespace, [{ key, resourceVersion }]);
  }

  private forget(key: string): void {
    this.known.delete(key);
    this.release(key);
    this.commits.putKnown(this.id, key, undefined);
  }

  private know(key: string, identity: KnownIdentity): void {
    this.subscribers?.add(key, this);
    this.known.set(key, identity);
  }

  private release(key: string): void {
    if (this.subscribers && this.hasNeverMatched(key)) this.subscribers.delete(key, this);
  }

  /** Records a state. With `later`, the body may be written later, since an older one is stored. */
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

/** The filter's input for an object that is not known. */
const unknown = { hash: undefined, matched: undefined };
const nothing: PreviousState = { ...unknown, possiblyOutdated: false };
const silent: Hearing = { onError: () => {} };
