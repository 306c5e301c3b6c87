import type { ResourceVersion } from "../../../runtime/base/resource-version.ts";
import type { Delivery, Outcome } from "../../../runtime/engine/delivery/delivery.ts";
import type { FunctionManifest, Trigger } from "../../../runtime/manifest/function.ts";
import { digestOf, holds } from "./choices.ts";
import { bodyOf, type Cluster, keyOf, type Revision, selects } from "./cluster.ts";
import { formFault, isMetadataForm, oldFault } from "./forms.ts";
import type { Identities, Identity, Told } from "./identities.ts";
import type { Law } from "./law-names.ts";

export interface TellingParts {
  readonly cluster: Cluster;
  readonly identities: Identities;
  readonly nextTick: () => number;
  /** The current time in milliseconds. */
  readonly now: () => number;
  readonly report: (law: Law, what: string) => void;
}

/** Checks each delivery as it begins, and records it. */
export class Telling {
  /** No delivery is allowed until something changes, except by schedules and resyncs. */
  isSilent = false;
  /** True if a process was killed, so that its deliveries may be unknown. */
  hasKilled = false;
  deliveries = 0;
  phase = 0;
  /** The tick with which this phase began. */
  phaseStart = 0;
  /**
   * The tick since which bodies of known objects are kept. If they are kept only in memory, this is the start of the process.
   */
  bodiesSince = 0;
  private readonly parts: TellingParts;
  private manifest!: FunctionManifest;
  private readonly begun = new Set<string>();
  /** By id: the event for which it was used. */
  private readonly uses = new Map<string, string>();
  private readonly running = new Set<string>();
  private readonly open = new Map<Delivery, { readonly told: Told; readonly manifest: FunctionManifest }>();

  constructor(parts: TellingParts) {
    this.parts = parts;
  }

  /** Puts another manifest into force. */
  enter(phase: number, manifest: FunctionManifest): void {
    this.phase = phase;
    this.manifest = manifest;
  }

  /**
   * Attempts that were running end with their process.
   * @param lostMs how far back commits may be lost as well, in milliseconds
   */
  processEnded(lostMs = 0): void {
    this.running.clear();
    this.open.clear();
    const lostSince = this.parts.now() - lostMs;
    for (const { told } of this.parts.identities.all) for (const each of told) each.mayBeLost ||= each.at > lostSince;
  }

  begins(delivery: Delivery): void {
    for (const each of delivery.members ?? [delivery]) this.begin(each);
  }

  ends(delivery: Delivery, outcome: Outcome): void {
    for (const each of delivery.members ?? [delivery]) {
      this.running.delete(lane(each));
      const open = this.open.get(each);
      if (!open) continue;
      this.open.delete(each);
      // A reload waits for running attempts, which end by the manifest with which they started.
      const { told, manifest } = open;
      const { retry, onFailure } = manifest.delivery;
      const isSpent = outcome.type === "permanent" || (outcome.type === "failed" && each.attempt >= retry.maxAttempts);
      told.ended = outcome.type === "ok" || (isSpent && onFailure !== "Block") ? "done" : "failed";
    }
  }

  private begin(delivery: Delivery): void {
    const { report, identities } = this.parts;
    const { id, trigger: name, type, causes } = delivery;
    this.deliveries++;
    if (this.running.has(lane(delivery))) report("atOnce", `${name} ${id}`);
    this.running.add(lane(delivery));
    if (type === "Scheduled") {
      this.scheduled(delivery);
      return;
    }
    const isResync = causes?.every((cause) => cause.type === "Resync");
    if (this.isSilent && !isResync) report("silent", describe(delivery));
    const identity = identities.of(name);
    if (!identity) report("type", `${describe(delivery)}: the manifest has no trigger ${name}`);
    else if (causes) this.run(delivery, identity);
    else this.event(delivery, identity);
  }

  private scheduled({ id, trigger, attempt, redelivered }: Delivery): void {
    const { report } = this.parts;
    if (!this.manifest.schedules.some(({ name }) => name === trigger))
      report("type", `Scheduled ${id}: the manifest has no schedule ${trigger}`);
    if (this.begun.has(id) && attempt === 1 && !redelivered) report("repeat", `Scheduled ${id}`);
    this.begun.add(id);
  }

  private run(delivery: Delivery, identity: Identity): void {
    const { cluster, report } = this.parts;
    const trigger = identity.trigger(this.phase);
    if (delivery.body.length === 0) {
      this.note(delivery, identity, "gone");
      return;
    }
    // The object may change while its body is read; the handler then sees the body.
    const { uid, resourceVersion } = JSON.parse(delivery.body.toString()).metadata;
    const state = cluster.find(resourceVersion);
    if (!state || state.uid !== uid || keyOf(state) !== keyOf(delivery.object))
      report("true", `${describe(delivery)} is no state of its object`);
    else this.compareForm("runForm", delivery, trigger, state);
    const shown = { ...delivery, resourceVersion, object: { ...delivery.object, uid } };
    this.note(shown, identity, "present", delivery);
  }

  private event(delivery: Delivery, identity: Identity): void {
    const { cluster, report } = this.parts;
    const trigger = identity.trigger(this.phase);
    const { type } = delivery;
    if (this.manifest.delivery.mode === "Reconcile") report("type", `${describe(delivery)} in mode Reconcile`);
    if (!trigger.events.includes(type)) report("type", `${describe(delivery)}, asked for: ${trigger.events}`);
    this.judgeId(delivery, identity);
    if (type === "Deleted") this.deletion(delivery, identity, trigger);
    else this.presence(delivery, identity, trigger);
    this.judgeOld(delivery, identity, trigger);
    const state = type === "Deleted" ? undefined : cluster.find(Number(delivery.resourceVersion));
    const shown = state && String(this.shownState(delivery, state).rv);
    this.note(
      { ...delivery, ...(shown && { resourceVersion: shown as ResourceVersion }) },
      identity,
      type === "Deleted" ? "gone" : "present",
      delivery,
    );
  }

  private judgeId(delivery: Delivery, identity: Identity): void {
    const { report } = this.parts;
    const { id, type, object, resourceVersion } = delivery;
    const isSilentRepeat = this.begun.has(id) && !isFlagged(delivery);
    this.begun.add(id);
    const use = `${type} of ${object.uid}${type === "Deleted" ? "" : `@${resourceVersion}`}, trigger ${identity.number}`;
    const before = this.uses.get(id);
    this.uses.set(id, use);
    if (before !== undefined && before !== use) report("reused", `${id}: ${before}, and ${use}`);
    else if (isSilentRepeat) {
      // If the object was created or deleted in between, this is another event.
      const isOther = identity.toldOf(object.uid).at(-1)?.type !== (type === "Deleted" ? "gone" : "present");
      report(isOther ? "reused" : "repeat", describe(delivery));
    }
  }

  private presence(delivery: Delivery, identity: Identity, trigger: Trigger): void {
    const { cluster, report } = this.parts;
    const { object, resourceVersion, body } = delivery;
    const state = cluster.find(resourceVersion);
    if (!state || state.uid !== object.uid || state.type === "Deleted") {
      report("true", `${describe(delivery)} is no state of its object`);
      return;
    }
    const shown = this.shownState(delivery, state);
    if (body.length === 0) report("objectForm", `${describe(delivery)} has no object`);
    else this.compareForm("objectForm", delivery, trigger, shown);
    // The namespaces that labels select are not known yet when events spilled to disk are delivered.
    if (!selects(trigger, shown) && trigger.namespaces.type !== "labels") report("selection", describe(delivery));
    const refused = trigger.matchConditions.find(({ expression }) => holds(expression, shown) === false);
    if (refused) report("condition", `${describe(delivery)}: ${refused.expression}`);
    if (isFlagged(delivery)) return;
    this.judgeNews(delivery, identity, state, shown.rv);
    if (delivery.type === "Modified" && !this.hasKilled) this.judgeChange(delivery, identity, state);
  }

  /**
   * A spilled event whose stored form no longer fits the manifest is delivered with the object's present state, which may be
   * newer.
   */
  private shownState({ flags, body, object }: Delivery, state: Revision): Revision {
    if (flags.reason !== "edited") return state;
    const newer = this.parts.cluster.find(JSON.parse(body.toString()).metadata.resourceVersion);
    return newer && newer.uid === object.uid && newer.rv >= state.rv ? newer : state;
  }

  /**
   * Checks that an unflagged delivery is newer than all earlier ones of its object, or that a deletion lay in between.
   */
  private judgeNews(delivery: Delivery, identity: Identity, state: Revision, shown: number): void {
    const { report } = this.parts;
    const before = identity.toldOf(state.uid);
    const since = before.slice(before.findLastIndex(({ type }) => type === "gone") + 1);
    const newer = since.find(({ rv, isRun, ended }) => !(isRun && ended) && rv >= Math.min(state.rv, shown));
    if (newer && delivery.flags.reason !== "selected")
      report("stale", `${describe(delivery)}, told before: @${newer.rv}`);
    if (delivery.type !== "Added" || delivery.flags.initial || !this.isSelectedByEdit(identity, state)) return;
    if (delivery.flags.reason !== "selected") report("saysSelected", describe(delivery));
  }

  /**
   * The fields are compared with those of the last state, which is stored whole if all manifests have kept it whole.
   */
  private judgeChange(delivery: Delivery, identity: Identity, state: Revision): void {
    const { cluster, report } = this.parts;
    const triggers = [...identity.triggers.values()];
    const { changedFields } = identity.trigger(this.phase);
    // A rule by owners reads the metadata only, and no more is stored.
    const keepsAll = triggers.every(
      ({ lastBody, object, events, key }) =>
        lastBody === "Full" && object === "Full" && events.includes("Deleted") && key?.type !== "owner",
    );
    if (changedFields.length === 0 || !keepsAll) return;
    if (triggers.some(({ apiVersion }) => apiVersion !== triggers[0]?.apiVersion)) return;
    if (this.isBodyGone(identity, state.uid)) return;
    const past = cluster.log.filter(({ uid, rv }) => uid === state.uid && rv < state.rv);
    const hasChanged = past.some((it) => digestOf(changedFields, it) !== digestOf(changedFields, state));
    if (!hasChanged) report("unchanged", describe(delivery));
  }

  /**
   * Whether no body is stored to compare edited fields with. The guide then allows the next change to be delivered. The Secrets
   * store keeps bodies in memory only: each is lost with its process until the object is delivered again. A digest of unchanged
   * fields is recorded.
   */
  private isBodyGone(identity: Identity, uid: string): boolean {
    if (this.bodiesSince === 0) return false;
    const last = identity.toldOf(uid).at(-1);
    if (last && last.tick > this.bodiesSince) return false;
    const fieldsIn = ({ changedFields }: Trigger) => JSON.stringify(changedFields);
    const since = [...identity.triggers].filter(([phase]) => phase >= (last?.phase ?? 0));
    return since.some(([, trigger]) => fieldsIn(trigger) !== fieldsIn(identity.trigger(this.phase)));
  }

  /** True if the edit before this phase selects a state that existed all along, and no earlier manifest selected it. */
  private isSelectedByEdit(identity: Identity, state: Revision): boolean {
    const before = [...identity.triggers].filter(([phase]) => phase < this.phase).map(([, trigger]) => trigger);
    const isNews = identity.hasBeenQuiet && identity.toldOf(state.uid).length === 0;
    if (!isNews || state.tick >= this.phaseStart || !identity.triggers.has(this.phase - 1)) return false;
    const past = this.parts.cluster.log.filter(({ uid, tick }) => uid === state.uid && tick < this.phaseStart);
    return !before.some((trigger) => past.some((each) => selects(trigger, each)));
  }

  private deletion(delivery: Delivery, identity: Identity, trigger: Trigger): void {
    const { cluster, report } = this.parts;
    const { object, flags, body } = delivery;
    const states = cluster.log.filter(({ uid }) => uid === object.uid);
    const triggers = [...identity.triggers.values()];
    const hasLeft = states.some((it) => it.type === "Deleted" || triggers.some((each) => !selects(each, it)));
    if (!hasLeft) report("true", `${describe(delivery)}, and it never left`);
    if (flags.finalStateUnknown) {
      const fault = formFault(body, trigger, states);
      if (fault) report("lastBodyForm", `${describe(delivery)}: ${fault}`);
    } else this.watchedDeletion(delivery, trigger, states);
    this.judgeReason(delivery, identity, states);
  }

  private watchedDeletion(delivery: Delivery, trigger: Trigger, states: readonly Revision[]): void {
    const { cluster, report } = this.parts;
    const rv = Number(delivery.resourceVersion);
    const left = cluster.find(rv);
    const was = states.findLast((it) => it.rv < rv);
    if (!was || left?.uid !== delivery.object.uid) report("true", `${describe(delivery)} is no deletion`);
    else this.compareForm("objectForm", delivery, trigger, { ...was, rv });
  }

  private judgeReason(delivery: Delivery, identity: Identity, states: readonly Revision[]): void {
    const told = identity.toldOf(delivery.object.uid).findLast(({ type }) => type === "present");
    const last = states.at(-1);
    if (!told || !last || last.type === "Deleted" || isFlagged(delivery)) return;
    const trigger = identity.trigger(told.phase);
    const since = states.filter(({ rv }) => rv >= told.rv);
    const isByEdit = since.every((it) => selects(trigger, it) && !selects(identity.trigger(this.phase), it));
    // A key that waited when the mode was edited became an event of the edit, which came later and is its reason.
    const { reason } = delivery.flags;
    if (isByEdit && reason !== "unselected" && reason !== "edited")
      this.parts.report("saysUnselected", describe(delivery));
  }

  private judgeOld(delivery: Delivery, identity: Identity, trigger: Trigger): void {
    const { cluster, report } = this.parts;
    const { oldBody, object, type, resourceVersion } = delivery;
    if (!oldBody) return;
    const states = cluster.log.filter(({ uid, type: of }) => uid === object.uid && of !== "Deleted");
    const fault = oldFault(oldBody, trigger, states);
    if (fault) report("oldForm", `${describe(delivery)}: ${fault}`);
    const { metadata } = JSON.parse(oldBody.toString());
    const rv = Number(metadata.resourceVersion);
    if (rv > Number(resourceVersion) || (rv === Number(resourceVersion) && type !== "Deleted"))
      report("oldState", `${describe(delivery)}: the old object is @${rv}`);
    if (this.hasKilled) return;
    const newest = identity.toldOf(object.uid).findLast((it) => it.type === "present" && it.ended === "done");
    if (newest && !isFlagged(delivery) && !newest.isFlagged && rv < newest.rv)
      report("oldState", `${describe(delivery)}: the old object is @${rv}, and @${newest.rv} was told`);
  }

  private compareForm(law: Law, delivery: Delivery, trigger: Trigger, state: Revision): void {
    const expected = bodyOf(state, trigger);
    if (delivery.body.equals(expected)) return;
    const { report } = this.parts;
    const found = delivery.body.toString();
    if (!sameJson(found, expected.toString()))
      report(law, `${describe(delivery)}: ${summary(found)} instead of ${summary(expected.toString())}`);
  }

  private note(delivery: Delivery, identity: Identity, type: Told["type"], given = delivery): void {
    const { object, resourceVersion, causes } = delivery;
    const told: Told = {
      tick: this.parts.nextTick(),
      at: this.parts.now(),
      phase: this.phase,
      key: keyOf(object),
      type,
      uid: object.uid,
      rv: Number(resourceVersion),
      isRun: causes !== undefined,
      isFlagged: isFlagged(delivery),
      ended: undefined,
      mayBeLost: false,
    };
    identity.told.push(told);
    this.open.set(given, { told, manifest: this.manifest });
  }
}

const lane = ({ trigger, object }: Delivery): string => `${trigger} ${keyOf(object)}`;

const isFlagged = ({ attempt, redelivered }: Delivery): boolean => attempt > 1 || redelivered;

/** Formats a delivery in short. */
export function describe({ trigger, type, object, resourceVersion, id, flags, causes, ...delivery }: Delivery): string {
  const what = causes ? `run of ${keyOf(object)}@${resourceVersion}` : `${type} ${keyOf(object)}@${resourceVersion}`;
  const why = causes?.map((cause) => [cause.type, cause.trigger, cause.name].filter(Boolean).join(" ")).join(", ");
  const said = [flags.reason, flags.initial && "initial", isFlagged(delivery as Delivery) && "flagged"].filter(Boolean);
  const details = [`id ${id}`, ...(why ? [`by ${why}`] : []), ...said];
  return `${trigger}: ${what} (${details.join("; ")})`;
}

function sameJson(one: string, other: string): boolean {
  try {
    return JSON.stringify(sorted(JSON.parse(one))) === JSON.stringify(sorted(JSON.parse(other)));
  } catch {
    return false;
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, each]) => [name, sorted(each)]),
  );
}

function summary(text: string): string {
  try {
    const object = JSON.parse(text);
    const form = isMetadataForm(object) ? "metadata" : "whole";
    return `${object.apiVersion} ${form} @${object.metadata?.resourceVersion}`;
  } catch {
    return text.slice(0, 40) || "nothing";
  }
}
