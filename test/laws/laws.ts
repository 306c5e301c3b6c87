import { type Delivery, type Outcome, uidOf } from "../../runtime/engine/delivery/delivery.ts";
import type { SpilledEvent } from "../../runtime/journal/batch.ts";
import type { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { changeOf, type History, namespace, type Revision } from "./history.ts";
import type { Setting } from "./world.ts";

/** Name of the world's only trigger. */
const triggerName = "settings";

type Told = Pick<Delivery, "type" | "object" | "flags" | "resourceVersion" | "id">;

/** Watches a world and notes every law that is broken. */
export class Laws {
  readonly broken: string[] = [];
  readonly deliveries: Delivery[] = [];
  private readonly history: History;
  /** Contents of the disk. Replaced after a restart that reads from another store. */
  disk: MemoryDisk;
  private readonly setting: Setting;
  /** The last attempt that began, by id. */
  private readonly attempts = new Map<string, number>();
  private readonly interrupted = new Set<string>();
  /**
   * Events that a handler or a person asked to repeat, without their epochs. They count as never attempted, except for the flag.
   */
  private readonly askedFor = new Set<string>();
  /** Deliveries that were sent to an executor that died, and flagged for it. */
  private readonly lostAhead = new Set<string>();
  /** Dead letters that were replayed. */
  private readonly putBack = new Set<string>();
  private readonly running = new Set<string>();
  /** Attempts that the disk showed as begun when the last process ended, by id. */
  private readonly onRecord = new Map<string, number>();
  /** By object: whether its last delivery was an Added or a Deleted, under any id. */
  private readonly passages = new Map<string, "Added" | "Deleted">();
  /** UIDs of objects whose deletion was delivered under any ID. */
  private readonly deleted = new Set<string>();
  private readonly flaggedOnDisk = new Set<string>();
  private readonly newestOnRecord = new Map<string, number>();
  /** By name: the newest state that was delivered for the first time. */
  private readonly newest = new Map<string, number>();
  /** The last event of each name that became terminal in a handler. */
  private readonly last = new Map<string, Delivery>();
  /** Number of deliveries that replaced others. */
  collapsed = 0;
  private mark: number | undefined;
  private firstList: number | undefined;
  private gaps = 0;

  constructor(history: History, disk: MemoryDisk, setting: Setting) {
    this.history = history;
    this.disk = disk;
    this.setting = setting;
  }

  gap(): void {
    this.gaps++;
  }

  /**
   * Reads from the disk which attempts are recorded as started. Each of them may have run, even if the process ended before it
   * did.
   */
  processEnded(): void {
    this.running.clear();
    this.onRecord.clear();
    this.newestOnRecord.clear();
    this.interrupted.clear();
    this.lostAhead.clear();
    this.flaggedOnDisk.clear();
    for (const { id, redelivered } of this.disk.spill.values()) if (redelivered) this.flaggedOnDisk.add(id);
    for (const { started } of this.disk.begun.values()) {
      for (const { id, key, attempt, resourceVersion, type } of started) {
        const name = key.slice(namespace.length + 1);
        this.onRecord.set(id, Math.max(attempt, this.onRecord.get(id) ?? 0));
        const uid = uidOf(id);
        // A delivery that was sent ahead may not have started, but is assumed to have.
        if (type === "Added" || type === "Deleted") this.passages.set(uid, type);
        if (type === "Deleted") continue;
        this.newestOnRecord.set(name, Math.max(Number(resourceVersion), this.newestOnRecord.get(name) ?? 0));
      }
    }
  }

  /**
   * These deliveries were sent to an executor that died before it began them. The runtime cannot know that they had not begun.
   */
  lost(deliveries: readonly Delivery[]): void {
    for (const { id } of deliveries) this.lostAhead.add(id);
  }

  begins(delivery: Delivery): void {
    this.deliveries.push(delivery);
    const { id, attempt, redelivered, object } = delivery;
    const { name } = object;
    this.expect(!this.running.has(name), `two events of ${name} run at once`);
    this.expect(this.running.size < this.setting.concurrency, "more lanes run than the manifest allows");
    this.running.add(name);
    const recorded = this.onRecord.get(id);
    const highest = Math.max(this.attempts.get(id) ?? 0, recorded ?? 0);
    const overtaken = Number(delivery.resourceVersion) <= (this.newestOnRecord.get(name) ?? 0);
    // The time of a deletion that a list found is unknown, and so is what overtook it.
    const { type } = delivery;
    const isSynthetic = type === "Deleted" && delivery.flags.synthetic === true && highest === 0;
    // After a rewind of the cluster an object may be deleted a second time: under another ID, but the handler knows of it.
    const vague = isSynthetic || (type === "Deleted" && this.deleted.has(object.uid));
    if (type === "Deleted") this.deleted.add(object.uid);
    const passed = type !== "Modified" && this.passages.get(object.uid) === type;
    if (type === "Added" || type === "Deleted") this.passages.set(object.uid, type);
    const flagged = highest > 0 || passed || overtaken || this.isKnownToRepeat(id);
    this.expect(vague || redelivered === flagged, `${id} began ${highest} times before, redelivered: ${redelivered}`);
    const again = (this.interrupted.has(id) && attempt === highest) || (this.isAskedFor(id) && attempt === 1);
    this.expect(attempt === highest + 1 || again, `${id} began ${highest} times before, attempt: ${attempt}`);
    this.interrupted.delete(id);
    this.attempts.set(id, attempt);
    // Attempts of a requested redelivery are counted from 1 again.
    if (this.isAskedFor(id) && attempt === 1) this.onRecord.delete(id);
    this.isTrue(delivery);
    if (!redelivered) this.isNews(delivery);
  }

  /** A person asked for this state of an object to be delivered again, as an Added or a Modified. */
  toldAgain({ uid, rv }: Revision): void {
    for (const type of ["Added", "Modified"]) this.askedFor.add(idOf({ uid, rv, type }));
  }

  /** A person replayed a dead letter. The change it delivers may be long over. */
  replayed(id: string): void {
    this.askedFor.add(withoutEpoch(id));
    this.putBack.add(id);
  }

  private isAskedFor(id: string): boolean {
    return this.askedFor.has(withoutEpoch(id));
  }

  private isKnownToRepeat(id: string): boolean {
    return this.flaggedOnDisk.has(id) || this.lostAhead.has(id) || this.isAskedFor(id);
  }

  ends(delivery: Delivery, outcome: Outcome): void {
    this.running.delete(delivery.object.name);
    if (outcome.type === "interrupted") this.interrupted.add(delivery.id);
    if (outcome.type === "ok" && outcome.requeueAfterMs !== undefined) {
      this.askedFor.add(withoutEpoch(delivery.id));
      this.attempts.set(delivery.id, 0);
      return;
    }
    const spent = outcome.type === "permanent" || (outcome.type === "failed" && delivery.attempt >= 3);
    const terminal = outcome.type === "ok" || (spent && this.setting.onFailure !== "Block");
    if (terminal && !this.putBack.has(delivery.id)) this.last.set(delivery.object.name, delivery);
  }

  /** After each commit: the checkpoint on disk is never ahead of what is on disk, and never goes back. */
  checkDisk(): void {
    const [view] = this.disk.views.values();
    const cursor = view?.cursors.get("");
    if (!view || cursor?.lowWaterMark === undefined) return;
    const mark = Number(cursor.lowWaterMark);
    this.firstList ??= mark;
    this.expect(mark >= (this.mark ?? 0), `the mark went from ${this.mark} back to ${mark}`);
    this.mark = mark;
    const spilled = new Map<string, SpilledEvent>();
    const events = [...this.disk.spill.values()]
      .filter((row) => row.kind !== "key")
      .filter(({ replayed }) => !replayed);
    for (const event of events.sort((a, b) => a.sequence - b.sequence)) spilled.set(event.name, event);
    const state = this.history.at(mark);
    for (const name of new Set(this.history.log.map((it) => it.name))) {
      const known = view.known.get(`${namespace}/${name}`);
      const waits = spilled.get(name);
      const deleted = waits ? waits.type === "Deleted" : known?.deleted;
      const rv = waits ? (deleted ? waits.deletedBy : waits.resourceVersion) : known?.resourceVersion;
      const isHere = state.get(name);
      const later = this.history.log.some((it) => it.name === name && it.rv > mark);
      if (isHere && !(this.setting.mode === "Latest" && later) && !this.isSuperseded(isHere, mark)) {
        this.expect(
          rv !== undefined && Number(rv) >= isHere.rv,
          `mark ${mark} is past ${name}@${isHere.rv}, known: ${rv}`,
        );
      }
      if (!isHere && rv !== undefined && !deleted) {
        this.expect(Number(rv) > mark, `mark ${mark} is past the deletion of ${name}, known: ${rv}`);
      }
    }
  }

  /**
   * Whether a list showed a newer state of an object that took the name over. The predecessor is then only known to have been
   * deleted before that state. Older states of the object are not delivered, and the newer one is still to come.
   */
  private isSuperseded({ name, uid, rv }: Revision, mark: number): boolean {
    const others = this.history.log.filter((it) => it.name === name);
    const tookOver = others.some((it) => it.uid !== uid && it.rv < rv);
    return this.gaps > 0 && tookOver && others.some((it) => it.uid === uid && it.rv > mark);
  }

  /**
   * Checks the end of a world, once it is quiet: the recorded objects are those of the cluster, nothing is left over, and every
   * net change was delivered.
   */
  checkEnd(): void {
    const { disk, history } = this;
    const [view] = disk.views.values();
    const here = history.at(history.now);
    const known = [...(view?.known ?? [])].map(([key, it]) => `${key}@${it.resourceVersion} ${it.uid} ${it.deleted}`);
    const real = [...here.values()].map((it) => `${namespace}/${it.name}@${it.rv} ${it.uid} false`);
    this.expect(known.sort().join() === real.sort().join(), `known at the end: ${known}, real: ${real}`);
    this.expect(view?.cursors.get("")?.lowWaterMark === String(history.now), `the mark did not reach ${history.now}`);
    this.expect(disk.spill.size === 0, "the spill is not empty");
    for (const name of new Set(history.log.map((it) => it.name))) this.checkNetChange(name, here.get(name));
    if (this.gaps === 0 && this.setting.mode === "All") this.checkEveryChange();
  }

  private checkNetChange(name: string, real: Revision | undefined): void {
    const told = this.last.get(name);
    if (!real) {
      const isNews = ({ id, type }: Delivery) => type === "Deleted" || !this.putBack.has(id);
      const begun = this.deliveries.findLast((it) => it.object.name === name && isNews(it));
      this.expect(!begun || begun.type === "Deleted", `${name} is gone, last told: ${begun?.id}`);
      return;
    }
    if (!told || told.object.uid !== real.uid) {
      this.expect(this.mayBeUntold(real), `${name}@${real.rv} was never told, last told: ${told?.id}`);
      return;
    }
    const state = this.history.find(told.resourceVersion);
    const same = this.filtersOnA ? state?.a === real.a : state?.rv === real.rv;
    this.expect(told.type !== "Deleted" && same === true, `${name}@${real.rv} is there, last told: ${told.id}`);
  }

  /** Without a gap each single change is delivered. */
  private checkEveryChange(): void {
    // A skipped first list that was interrupted begins another epoch.
    const told = new Set(this.deliveries.map((it) => withoutEpoch(it.id)));
    const before = new Map<string, Revision>();
    for (const revision of this.history.log) {
      const was = before.get(revision.name);
      before.set(revision.name, revision);
      if (this.firstList === undefined || revision.rv <= this.firstList) continue;
      if (this.filtersOnA && revision.type === "Modified" && was?.a === revision.a) continue;
      if (this.isInToldGap(revision)) continue;
      const { type, uid, rv, name } = revision;
      const id =
        type === "Deleted" && !this.setting.selective ? `${triggerName}:${uid}/Deleted` : idOf({ uid, rv, type });
      this.expect(told.has(id), `${type} ${name}@${rv} was not delivered, and no history was lost`);
    }
  }

  /**
   * Whether a later state of the object was delivered in place of this one. An Added or a Deleted must never be replaced.
   */
  private isInToldGap({ type, uid, rv }: Revision): boolean {
    const standsFor = ({ object, flags, resourceVersion }: Delivery) =>
      object.uid === uid && isBacklog(flags) && Number(flags.gap?.from) < rv && rv < Number(resourceVersion);
    return type === "Modified" && this.deliveries.some(standsFor);
  }

  private get filtersOnA(): boolean {
    return this.setting.changedFields.length > 0;
  }

  /** True for an object of the first list that has not changed since, if such objects are skipped. */
  private mayBeUntold(real: Revision): boolean {
    const first = this.history.at(this.firstList ?? 0).get(real.name);
    if (this.setting.initialEvents === "Deliver" || first?.uid !== real.uid) return false;
    return this.filtersOnA ? first.a === real.a : first.rv === real.rv;
  }

  /** Checks that the delivery matches the history. */
  private isTrue({ type, object, resourceVersion, body, flags, id }: Delivery): void {
    const state = this.history.find(resourceVersion);
    if (type === "Deleted") {
      const gone = this.history.log.find((it) => it.type === "Deleted" && it.uid === object.uid);
      this.expect(gone !== undefined, `${id}, but ${object.name} was not deleted`);
      this.expect(flags.synthetic || state === gone, `${id} is not the deletion`);
      return;
    }
    this.expect(state?.uid === object.uid && state.name === object.name, `${id} is no state of ${object.name}`);
    if (isBacklog(flags)) this.isTrueGap({ type, object, resourceVersion, id, flags });
    this.expect(!state || changeOf(state).body.equals(body), `${id} has another state's body`);
  }

  /**
   * Checks a gap: it begins at a state of the object, ends at the delivered one, and every state in between is a Modified.
   */
  private isTrueGap({ type, object, flags, resourceVersion, id }: Told): void {
    const from = this.history.log.find(({ rv }) => String(rv) === flags.gap?.from);
    const between = this.history.log.filter(
      ({ rv, uid }) => uid === object.uid && rv > (from?.rv ?? 0) && rv < Number(resourceVersion),
    );
    this.collapsed++;
    this.expect(flags.synthetic === true && type === "Modified", `${id} stands for others, and is a ${type}`);
    this.expect(
      from?.name === object.name && flags.gap?.to === resourceVersion,
      `${id} has no true gap: ${flags.gap?.from}`,
    );
    this.expect(
      between.length > 0 && between.every((it) => it.type === "Modified"),
      `${id} stands for ${between.length} others`,
    );
  }

  /** Checks that an event delivered for the first time is newer than all that were delivered before. */
  private isNews({ type, flags, object, resourceVersion, id }: Delivery): void {
    if (type === "Deleted" && flags.synthetic) return;
    const rv = Number(resourceVersion);
    const newest = this.newest.get(object.name) ?? 0;
    this.expect(rv > newest, `${id} came after ${object.name}@${newest}`);
    this.newest.set(object.name, Math.max(rv, newest));
  }

  private expect(holds: boolean, law: string): void {
    if (!holds) this.broken.push(law);
  }
}

/** An event's id in the first epoch. */
const idOf = ({ uid, rv, type }: Pick<Revision, "uid" | "rv"> & { readonly type: string }): string =>
  `${triggerName}:${uid}/${rv}/${type}`;

/** True if the delivery replaces earlier events of its object. */
const isBacklog = ({ reason }: Delivery["flags"]): boolean => reason === "backlog";

const withoutEpoch = (id: string): string => id.replace(/@\d+$/, "");
