import type { Delivery, Outcome } from "../../../runtime/engine/delivery/delivery.ts";
import { type Cluster, keyOf, objectOf, type Revision } from "./cluster.ts";
import { Collection } from "./collection.ts";
import type { Plan } from "./plan.ts";

/** Events in a world's past that limit which laws can be checked. */
export interface Past {
  /** True if history was compacted, so that only net changes can be known. */
  readonly compacted: boolean;
  /** True if the cluster was restored, so that its resourceVersions name other states than before. */
  readonly restored: boolean;
  /** True while the process drains: its functions accept nothing any more. */
  readonly draining: boolean;
}

/** Checks the deliveries of one function's handler, and records every broken law. */
export class FunctionLaws {
  readonly broken: string[] = [];
  deliveries = 0;
  /** The server's newest resourceVersion when the function was first seen to be ready. */
  private readyAt: number | undefined;
  private readonly plan: Plan;
  private readonly cluster: Cluster;
  private readonly past: Past;
  private readonly running = new Set<string>();
  /** By id: the resourceVersion of every event delivered so far. */
  private readonly begun = new Map<string, number>();
  /** Ids of delivered events whose states a restore has undone. */
  private undone: string[] = [];
  /** By key: each delivered state, as `type@resourceVersion`. */
  private readonly told = new Map<string, Set<string>>();
  private readonly last = new Map<string, Delivery>();
  /** Uids of the objects that have been delivered at least once. */
  private readonly toldOf = new Set<string>();
  /** By key: the last delivered value of the field that `changedFields` compares. */
  private readonly newestA = new Map<string, number | undefined>();
  /** By key: the newest resourceVersion that was delivered without a flag. */
  private readonly newest = new Map<string, number>();
  /** Uids of objects that may have existed, in scope, before it was ready. */
  private readonly initial = new Set<string>();
  /** Deliveries that replaced several changes while they waited. */
  private readonly standIns: Delivery[] = [];
  private hasCollapsed = false;
  private replays = false;
  private isDeployed = false;
  /** True for namespaces whose objects may count as older than the function. */
  private isInitial: (namespace: string) => boolean = () => true;

  constructor(plan: Plan, cluster: Cluster, past: Past) {
    this.plan = plan;
    this.cluster = cluster;
    this.past = past;
  }

  /** Called at each step until the function is ready: existing objects may count as older than it. */
  starting(): void {
    for (const { uid, namespace } of this.inScope().values()) if (this.isInitial(namespace)) this.initial.add(uid);
  }

  /**
   * Called when a process starts. `isInitial`: true for namespaces without a record of objects from the function's deployment.
   * That does not apply once the function was ready for a while, unless the machine lost the record.
   */
  processBegins(isInitial: (namespace: string) => boolean, lostPower: boolean): void {
    this.isInitial = this.isDeployed && !lostPower ? () => false : isInitial;
    // A power loss may lose the record of a restore and of what it undid, so an object may be deleted once more.
    if (lostPower) for (const id of this.undone) this.begun.delete(id);
  }

  /** Called when the cluster was restored. `backup`: the newest resourceVersion that it has from before. */
  timeWentBack(backup: number): void {
    this.undone = [...this.begun].filter(([, rv]) => rv > backup).map(([id]) => id);
  }

  /**
   * A source reported that its kind does not exist, so whatever appears there later is news. `namespace`: undefined for all.
   */
  foundNoKind(namespace: string | undefined): void {
    const { isInitial } = this;
    this.isInitial = (other) => namespace !== undefined && other !== namespace && isInitial(other);
  }

  ready(): void {
    this.readyAt ??= this.cluster.now;
  }

  /** Called when it was ready long enough for that to be on record. */
  deployed(): void {
    this.isDeployed = true;
  }

  /**
   * Forgets what the function lost in a power loss: in the namespaces of `isLost` its checkpoints may be gone, and then it starts
   * again without knowing what was delivered before, except for the objects of `versions`, which it has on record.
   */
  begunAnew(isLost: (namespace: string) => boolean, versions: ReadonlyMap<string, number>): void {
    this.readyAt = undefined;
    for (const [key, { object, resourceVersion }] of this.last)
      if (isLost(object.namespace) && versions.get(object.uid) !== Number(resourceVersion)) this.last.delete(key);
  }

  /**
   * A power loss may also remove the record of the object that was delivered last. If its history is compacted too, or its
   * namespace is no longer selected, nothing shows that the object existed or matched, and its deletion is not delivered.
   */
  recordIs(versions: ReadonlyMap<string, number>): void {
    for (const [key, { object, resourceVersion }] of this.last) {
      const recorded = versions.get(object.uid);
      const isOld = this.plan.condition && (recorded ?? 0) < Number(resourceVersion);
      if (recorded === undefined || isOld) this.last.delete(key);
    }
  }

  get isReady(): boolean {
    return this.readyAt !== undefined;
  }

  replayed(): void {
    this.replays = true;
  }

  /** Records that waiting changes were replaced by a newer one of their object. */
  collapsed(): void {
    this.hasCollapsed = true;
  }

  processEnded(): void {
    this.running.clear();
  }

  begins(delivery: Delivery): void {
    this.deliveries++;
    const { id, attempt, redelivered, object, type, resourceVersion, flags } = delivery;
    const key = keyOf(object);
    this.expect(!this.running.has(key), `two events of ${key} run at once`);
    this.expect(this.running.size < this.plan.manifest.delivery.concurrency, "more lanes run than the manifest allows");
    this.running.add(key);
    const flagged = redelivered || attempt > 1;
    this.expect(flagged || !this.begun.has(id), `${id} began again, unflagged`);
    // A replayed dead letter delivers an old state. A redelivery after a kill is the newest state that was delivered.
    if (!this.begun.has(id) || !this.replays) this.newestA.set(key, aOf(delivery));
    this.begun.set(id, Number(resourceVersion));
    if (this.past.restored && this.isUndone(delivery)) this.undone.push(id);
    if (!this.past.restored) {
      this.isTrue(delivery);
      const news = !flagged && !(type === "Deleted" && flags.synthetic);
      const rv = Number(resourceVersion);
      const newest = this.newest.get(key) ?? 0;
      this.expect(
        !news || this.plan.trigger.namespaces.type === "labels" || rv > newest || this.isOwnDeletion(delivery),
        `${id} came after ${key}@${newest}`,
      );
      if (news) this.newest.set(key, Math.max(rv, newest));
    }
    if (type === "Modified") this.isKnown(delivery);
    if (flags.reason === "backlog") this.standIns.push(delivery);
    this.toldOf.add(object.uid);
    const told = this.told.get(key) ?? new Set();
    this.told.set(key, told.add(`${type}@${resourceVersion}`));
    this.last.set(key, delivery);
  }

  ends({ object }: Delivery, _outcome: Outcome): void {
    this.running.delete(keyOf(object));
  }

  /**
   * Checks the end of a world, once it is quiet: every net change was delivered, and every single change if no history was lost.
   * `stuck`: the key of an object whose handler makes no progress, which must not delay the others.
   */
  checkEnd(stuck?: string): void {
    const here = this.inScope();
    for (const [key, state] of here) if (key !== stuck) this.checkPresent(key, state);
    for (const [key, last] of this.last) if (key !== stuck && !here.has(key)) this.checkAbsent(key, last);
    const { compacted, restored } = this.past;
    const all = this.plan.manifest.delivery.mode === "All" && this.plan.trigger.namespaces.type !== "labels";
    if (!compacted && !restored && all) this.checkEveryChange(stuck);
  }

  /** True for a deletion that is shown at the resourceVersion of the previous state. */
  private isOwnDeletion({ type, resourceVersion, object }: Delivery): boolean {
    return (
      type === "Deleted" && this.cluster.deletesAsItWas && this.newest.get(keyOf(object)) === Number(resourceVersion)
    );
  }

  private checkPresent(key: string, state: Revision): void {
    const { trigger, condition } = this.plan;
    if (condition?.comparesOld || (condition && !condition.holds(state, undefined))) return;
    if (trigger.initialEvents === "Skip" && this.initial.has(state.uid)) return;
    const told = [...(this.told.get(key) ?? [])];
    const last = this.last.get(key);
    const isTold = told.some((each) => each !== `Deleted@${state.rv}` && each.endsWith(`@${state.rv}`));
    const same = trigger.changedFields.length > 0 && (this.newestA.get(key) === state.a || this.cameToMatch(state));
    this.expect(isTold || same, `${key}@${state.rv} is there and was not told; told: ${told.slice(-4)}`);
    if (this.replays || same) return;
    // A state that a restore brought back may have been delivered earlier, with another state after it.
    const isLast = last?.type !== "Deleted" && (!this.past.restored || Number(last?.resourceVersion) === state.rv);
    this.expect(isLast, `${key}@${state.rv} is there, last told: ${last?.id}`);
  }

  /**
   * Whether the compared field may have taken this value while the condition did not hold, when nothing is delivered.
   */
  private cameToMatch({ uid, rv, a }: Revision): boolean {
    const { condition } = this.plan;
    if (!condition) return false;
    const before = this.cluster.log.filter((it) => it.uid === uid && it.rv < rv && it.a === a);
    return this.past.restored || before.some((it) => !condition.holds(it, undefined));
  }

  private checkAbsent(key: string, last: Delivery): void {
    const { trigger, condition } = this.plan;
    if (this.replays || !trigger.events.includes("Deleted")) return;
    if (condition && !this.heldAllAlong(condition, last)) return;
    this.expect(last.type === "Deleted", `${key} is gone, last told: ${last.id}`);
  }

  /** Whether the condition held for each state of the object since the last delivered one. */
  private heldAllAlong(condition: NonNullable<Plan["condition"]>, { object, resourceVersion }: Delivery): boolean {
    if (condition.comparesOld || this.past.restored) return false;
    const since = this.cluster.log.filter(({ uid, rv }) => uid === object.uid && rv >= Number(resourceVersion));
    return since.every((state) => condition.holds(state, undefined));
  }

  /** Checks that every single change of a watched object was delivered. Only holds without a gap. */
  private checkEveryChange(stuck: string | undefined): void {
    const { trigger, condition } = this.plan;
    for (const { type, revision } of this.watched()) {
      if (this.readyAt === undefined || revision.rv <= this.readyAt) continue;
      const before = this.cluster.before(revision);
      if (!trigger.events.includes(type)) continue;
      if (type === "Modified" && trigger.changedFields.length > 0 && before?.a === revision.a) continue;
      if (condition && (type === "Deleted" || !condition.holds(revision, type === "Added" ? undefined : before)))
        continue;
      const key = keyOf(revision);
      if (key === stuck || (type === "Modified" && this.mayHaveCollapsed(revision))) continue;
      const told = this.told.get(key)?.has(`${type}@${revision.rv}`);
      this.expect(told === true, `${type} ${key}@${revision.rv} was not told, and no history was lost`);
    }
  }

  /**
   * Whether a newer delivery stood for this state. If a filter suppressed that delivery, neither it nor its gap was seen.
   */
  private mayHaveCollapsed({ uid, rv }: Revision): boolean {
    const { trigger, condition } = this.plan;
    if (this.hasCollapsed && (condition || trigger.changedFields.length > 0)) return true;
    return this.standIns.some(
      ({ object, flags, resourceVersion }) =>
        object.uid === uid && Number(flags.gap?.from) < rv && rv < Number(resourceVersion),
    );
  }

  /** Everything that the function's watches showed. */
  private *watched(): Generator<{ readonly type: Delivery["type"]; readonly revision: Revision }> {
    for (const collection of this.collections()) {
      for (const line of collection.changes(0, Number.POSITIVE_INFINITY).lines) {
        const { type, object } = line as { type: string; object: { metadata: { resourceVersion: string } } };
        const revision = this.cluster.find(object.metadata.resourceVersion);
        if (revision) yield { type: types[type] ?? "Modified", revision };
      }
    }
  }

  private collections(): Collection[] {
    const { namespaces, labelSelector } = this.plan.trigger;
    const paths =
      namespaces.type === "names"
        ? namespaces.names.map((name) => `/api/v1/namespaces/${name}/configmaps`)
        : ["/api/v1/configmaps"];
    return paths.map((path) => new Collection(this.cluster, path, labelSelector === "" ? {} : { labelSelector }));
  }

  /** The objects that the trigger currently selects, by key. */
  private inScope(): Map<string, Revision> {
    const { namespaces, labelSelector } = this.plan.trigger;
    const chosen = this.cluster.here("Namespace");
    return new Map(
      [...this.cluster.here("ConfigMap")].filter(([, it]) => {
        if (labelSelector !== "" && !it.on) return false;
        if (namespaces.type === "names") return namespaces.names.includes(it.namespace);
        return namespaces.type === "all" || chosen.get(keyOf({ namespace: "", name: it.namespace }))?.on === true;
      }),
    );
  }

  /** True if a restore has undone the delivered state, and the delivery had waited until after that. */
  private isUndone({ type, object, resourceVersion }: Delivery): boolean {
    if (type !== "Deleted") return this.cluster.find(resourceVersion)?.uid !== object.uid;
    return [...this.cluster.here("ConfigMap").values()].some(({ uid }) => uid === object.uid);
  }

  /** Checks that the delivery matches the history. */
  private isTrue({ type, object, resourceVersion, body, id }: Delivery): void {
    if (type === "Deleted") return;
    const state = this.cluster.find(resourceVersion);
    this.expect(state?.uid === object.uid && state.name === object.name, `${id} is no state of ${object.name}`);
    const isBody = state === undefined || JSON.stringify(objectOf(state)) === body.toString();
    this.expect(isBody, `${id} has another state's body`);
  }

  /** An object whose Added was never delivered must have existed before the function. */
  private isKnown({ id, object: { uid } }: Delivery): void {
    const { trigger, condition } = this.plan;
    const filtered = condition !== undefined || trigger.changedFields.length > 0;
    const skipped = trigger.initialEvents === "Skip" && this.initial.has(uid);
    this.expect(
      filtered || skipped || this.past.restored || this.toldOf.has(uid),
      `${id} came, and its object was never told as Added`,
    );
  }

  private expect(holds: boolean, law: string): void {
    if (!holds) this.broken.push(`${this.plan.manifest.name}: ${law}`);
  }
}

const types: Readonly<Record<string, Delivery["type"]>> = { ADDED: "Added", MODIFIED: "Modified", DELETED: "Deleted" };

const aOf = ({ body }: Delivery): number | undefined =>
  (JSON.parse(body.toString()) as { spec?: { a?: number } }).spec?.a;
