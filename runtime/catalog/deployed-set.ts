import { WatchfireError } from "../base/errors.ts";
import type { Logger } from "../observe/log.ts";
import { type Canary, readCanary, saltOf } from "./canary.ts";
import type { ConfigMap } from "./config-map.ts";
import { type IndexEntry, isUnset, readIndex, revisionOf } from "./deployed-index.ts";
import type { CanaryOffer, FunctionOffer, RejectedOffer } from "./function-source.ts";
import type { HeldConfigMaps } from "./held-config-maps.ts";
import type { IndexTrust } from "./index-trust.ts";
import { indexName, setLabel } from "./names.ts";
import { damaged, inSet, type OpenedFunction } from "./opened-function.ts";
import { placeOf } from "./packed-function.ts";

/** The room that is left for one set of a namespace. */
export interface SetRoom {
  readonly namespace: string;
  readonly functions: number;
  /** Sum of `resources.memory`, in bytes. */
  readonly memoryBytes: number;
  /** Bytes of code, unpacked. */
  readonly codeBytes: number;
  /** Most trust groups of the namespace, and those of its other sets. */
  readonly mostGroups: number;
  readonly groups: ReadonlySet<string | undefined>;
}

interface DeployedSetOptions {
  readonly name: string;
  readonly account: string;
  readonly held: HeldConfigMaps;
  /** Verifies the index. Default: every index is accepted. */
  readonly trust: IndexTrust | undefined;
  readonly log: Pick<Logger, "error" | "info">;
  /** Returns the room that other sets leave. Default: there are no limits. */
  readonly room?: (() => SetRoom) | undefined;
  /** Called when other code is in use. Default: nobody is notified. */
  readonly took?: ((revision: TakenRevision) => void) | undefined;
}

/** The code of a set that is in use now. */
export interface TakenRevision {
  readonly set: string;
  /** Number of its revision; `undefined` if a version without revisions deployed it. */
  readonly number: number | undefined;
  /** Functions that were added, changed or removed. */
  readonly changed: readonly string[];
  /** Whether the set has no functions any more. */
  readonly isEmpty: boolean;
  /** Whether the runtime has just started. The set may then be unchanged. */
  readonly isFirst: boolean;
  /** The canary that begins, or the record of its end by a command. Absent: the current code changes. */
  readonly canary?: Canary;
}

/** The functions of a set that are in use. */
interface TakenSet {
  readonly functions: readonly FunctionOffer[];
  readonly rejected: readonly RejectedOffer[];
  /** Bytes of their code, unpacked. */
  readonly codeBytes: number;
  /** Whether all of it could be opened. */
  readonly whole: boolean;
  /** The entries of the index. */
  readonly is: string;
  /** Number of its revision; `undefined` if a version without revisions deployed it. */
  readonly revision?: number | undefined;
  /** Whether a version without sets wrote the index. */
  readonly unlabelled: boolean;
  /** The canary that is used, or the record of its end. */
  readonly canary?: Canary | undefined;
}

const noCanary = { offers: new Map<string, CanaryOffer>(), codeBytes: 0 };

const none: TakenSet = { functions: [], rejected: [], codeBytes: 0, whole: true, is: "[]", unlabelled: false };

/**
 * One set as the runtime sees it. It is used once each of the ConfigMaps that its index names exists and matches the index; until
 * then the functions that it had before stay.
 */
export class DeployedSet {
  taken: TakenSet | undefined;
  fault: WatchfireError | undefined;
  /**
   * With limits: the functions of a version that cannot be used while the one before runs, so that its owner sees why. Otherwise
   * empty.
   */
  refused: readonly RejectedOffer[] = [];
  /** Names of the ConfigMaps that its index named last. */
  wanted: readonly string[] = [];
  private readonly options: DeployedSetOptions;
  private readonly index: string;

  /** `isNew`: the set did not exist when the runtime read the ConfigMaps before. */
  constructor(options: DeployedSetOptions, isNew: boolean) {
    this.options = options;
    this.index = indexName(options.account, options.name);
    if (isNew) this.taken = none;
  }

  /** Whether it has no functions, running or refused. */
  get isEmpty(): boolean {
    return this.taken?.is === "[]" && this.refused.length === 0 && this.fault === undefined;
  }

  /**
   * Uses the functions that the index names now, if they are others and complete. `populated`: whether there are ConfigMaps of
   * its functions. Returns true if other functions are in use or refused now.
   */
  consider(populated: boolean): boolean {
    const before = this.refused;
    this.refused = [];
    const isTaken = this.take(populated);
    return isTaken || shownOf(before) !== shownOf(this.refused);
  }

  private take(populated: boolean): boolean {
    const { name, held, log } = this.options;
    const entries = this.entries(populated);
    if (!entries) {
      if (this.fault) this.refuse(this.taken?.functions ?? [], this.fault);
      return false;
    }
    const is = JSON.stringify(entries);
    const { configMap } = held.index(this.index);
    const canary = configMap && readCanary(configMap);
    this.wanted = [...entries, ...(canary?.functions ?? [])].map((each) => each.configMap);
    const opened = this.open(entries).map((each) => inSet(each, name));
    const [damage] = opened.flatMap((each) => (each.type === "damaged" ? each.rejected.faults : []));
    const whole = damage === undefined;
    if (damage) {
      this.say(damage);
      // Without functions from before, each one is used or rejected on its own.
      if (this.taken) {
        const rejected = opened.flatMap((each) => (each.type === "offer" ? [] : each.rejected));
        this.refuse(
          opened.flatMap((each) => (each.type === "offer" ? each.offer : [])),
          damage,
          rejected,
        );
        return false;
      }
    }
    const opening = canary && this.openCanary(configMap, entries, canary);
    if (opening instanceof WatchfireError) this.say(opening);
    else if (whole) this.fault = undefined;
    const used = opening instanceof WatchfireError ? undefined : canary;
    const unlabelled = configMap !== undefined && !(setLabel in configMap.metadata.labels);
    const revision = configMap && revisionOf(configMap);
    if (this.taken?.is === is && this.taken.whole && this.taken.canary?.id === used?.id) {
      this.taken = { ...this.taken, unlabelled, revision };
      return false;
    }
    const before = this.taken;
    const { offers, codeBytes } = opening instanceof WatchfireError || !opening ? noCanary : opening;
    this.taken = {
      functions: opened.flatMap((each) => {
        if (each.type !== "offer") return [];
        const own = offers.get(each.offer.manifest.name);
        return own ? { ...each.offer, canary: own } : each.offer;
      }),
      rejected: opened.flatMap((each) => (each.type === "offer" ? [] : each.rejected)),
      codeBytes: opened.reduce((sum, each) => sum + (each.type === "offer" ? each.codeBytes : 0), codeBytes),
      whole,
      is,
      unlabelled,
      canary: used,
      revision,
    };
    this.remember(configMap);
    log.info({ set: name, revision, functions: entries.length, whole }, "deployed functions loaded");
    const changed = changedNames(before?.is, entries);
    const taken = { set: name, number: revision, isEmpty: entries.length === 0, isFirst: before === undefined };
    if (whole && changed.length > 0) this.options.took?.({ ...taken, changed });
    const ended = before?.canary?.functions ?? [];
    const names = (used?.functions.length ? used.functions : ended).map((each) => each.name);
    if (used && used.id !== before?.canary?.id && names.length > 0)
      this.options.took?.({ ...taken, changed: names, canary: used });
    return true;
  }

  /** Opens the canary. One that cannot be used leaves all keys to the current code: returns why. */
  private openCanary(index: ConfigMap | undefined, entries: readonly IndexEntry[], canary: Canary) {
    const { name, trust } = this.options;
    try {
      if (index) trust?.assertCanary(index, name);
    } catch (error) {
      if (error instanceof WatchfireError) return error;
      throw error;
    }
    const current = new Set(entries.map((each) => each.name));
    const all = this.open([...entries, ...canary.functions.filter((each) => current.has(each.name))]);
    const salt = saltOf(canary);
    const offers = new Map<string, CanaryOffer>();
    let codeBytes = 0;
    for (const each of all.slice(entries.length)) {
      if (each.type !== "offer") return each.rejected.faults[0] ?? undefined;
      const { manifest, bundle } = each.offer;
      offers.set(manifest.name, { manifest, bundle, id: canary.id, share: canary.share, salt });
      codeBytes += each.codeBytes;
    }
    return { offers, codeBytes };
  }

  /** Refuses functions because of a fault of their set, and others for their own faults. */
  private refuse(
    functions: readonly FunctionOffer[],
    fault: WatchfireError,
    rejected: readonly RejectedOffer[] = [],
  ): void {
    if (!this.options.room) return;
    const refused = functions.map(({ manifest: { name, file }, origin }) => ({ name, file, faults: [fault], origin }));
    this.refused = [...refused, ...rejected];
  }

  /** Opens the entries, until they need more than there is room for. Then no entry can be used. */
  private open(entries: readonly IndexEntry[]): readonly OpenedFunction[] {
    const { name, held, room: roomOf } = this.options;
    const room = roomOf?.();
    const fault = (what: string, left: string) =>
      new WatchfireError("WF_DEPLOYED_LIMIT", {
        what: `the set ${name} has ${what}, and namespace ${room?.namespace} has room for ${left}`,
      });
    const refused = (found: WatchfireError) => entries.map((entry) => damaged(entry, found));
    if (room && entries.length > room.functions)
      return refused(fault(`${entries.length} functions`, `${room.functions}`));
    const opened: OpenedFunction[] = [];
    let memoryBytes = 0;
    let codeBytes = 0;
    const groups = new Set(room?.groups);
    for (const entry of entries) {
      const each = held.open(entry);
      opened.push(each);
      if (!room || each.type !== "offer") continue;
      memoryBytes += each.offer.manifest.resources.memoryBytes;
      codeBytes += each.codeBytes;
      if (memoryBytes > room.memoryBytes) {
        return refused(
          fault("functions with more `resources.memory` together", `${mebibytes(room.memoryBytes)} of it`),
        );
      }
      groups.add(each.offer.manifest.trustGroup);
      if (groups.size > room.mostGroups) {
        return refused(fault("more trust groups", `${room.mostGroups} groups, the one without a name among them`));
      }
      if (codeBytes > room.codeBytes) return refused(fault("more code", `${mebibytes(room.codeBytes)} of it`));
    }
    return opened;
  }

  /** Records the index, so that no older one is accepted after it. A data folder that cannot be written is reported elsewhere. */
  private remember(index: ConfigMap | undefined): void {
    const { name, trust, log } = this.options;
    if (!trust || !index || isUnset(index)) return;
    try {
      trust.took(index, name);
    } catch (error) {
      log.error({ error: String(error) }, "signed deployment not remembered over a restart");
    }
  }

  /** Returns the entries of the index; `undefined` if they are unknown, in which case the functions in use stay. */
  private entries(populated: boolean): readonly IndexEntry[] | undefined {
    const { name, held, trust } = this.options;
    const { index } = this;
    const { there, configMap } = held.index(index);
    if (!there || (configMap && isUnset(configMap))) {
      if (trust?.seen.has(name)) {
        const what = "the signed index is gone";
        this.say(new WatchfireError("WF_DEPLOYED_UNTRUSTED", { what, place: { file: placeOf(index) } }));
        return undefined;
      }
      if (!populated) return [];
      // The first deployment is in progress: its index is written last.
      if (this.taken?.is === "[]") {
        this.fault = undefined;
        return undefined;
      }
      this.say(new WatchfireError("WF_DEPLOYED_INDEX", { what: `no ConfigMap ${index} names the functions` }));
      return undefined;
    }
    try {
      if (configMap) {
        trust?.assert(configMap, name);
        return readIndex(configMap);
      }
      throw new WatchfireError("WF_DEPLOYED_INDEX", { what: `the ConfigMap ${index} cannot be read` });
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      this.say(error);
      return undefined;
    }
  }

  private say(fault: WatchfireError): void {
    if (fault.message === this.fault?.message) return;
    this.fault = fault;
    const kept = this.taken !== undefined;
    this.options.log.error({ error: fault.message, kept }, "deployment not loaded");
  }
}

const shownOf = (refused: readonly RejectedOffer[]): string =>
  JSON.stringify(refused.map(({ name, faults }) => [name, faults.map(({ message }) => message)]));

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`;

/** Returns the names of the functions that differ. `was`: the entries of the index before, as text. */
function changedNames(was = "[]", entries: readonly IndexEntry[]): string[] {
  const before = new Map((JSON.parse(was) as readonly IndexEntry[]).map(({ name, sha256 }) => [name, sha256]));
  const now = new Map(entries.map(({ name, sha256 }) => [name, sha256]));
  return [...new Set([...before.keys(), ...now.keys()])].filter((name) => before.get(name) !== now.get(name)).sort();
}
