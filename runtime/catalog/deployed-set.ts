import { WatchfireError } from "../base/errors.ts";
import type { Logger } from "../observe/log.ts";
import type { ConfigMap } from "./config-map.ts";
import { type IndexEntry, isUnset, readIndex, revisionOf } from "./deployed-index.ts";
import type { FunctionOffer, RejectedOffer } from "./function-source.ts";
import type { HeldConfigMaps } from "./held-config-maps.ts";
import type { IndexTrust } from "./index-trust.ts";
import { indexName, setLabel } from "./names.ts";
import { inSet, type OpenedFunction, refusedFor } from "./opened-function.ts";
import { placeOf } from "./packed-function.ts";

interface DeployedSetOptions {
  readonly name: string;
  readonly account: string;
  readonly held: HeldConfigMaps;
  /** Verifies the index. Default: every index is accepted. */
  readonly trust: IndexTrust | undefined;
  readonly log: Pick<Logger, "error" | "info">;
  /** Returns why functions are too many for their namespace. Default: any number may run. */
  readonly objection?: ((set: string, functions: readonly OpenedFunction[]) => WatchfireError | undefined) | undefined;
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
}

/** The functions of a set that are in use. */
interface TakenSet {
  readonly functions: readonly FunctionOffer[];
  readonly rejected: readonly RejectedOffer[];
  /** Whether all of it could be opened. */
  readonly whole: boolean;
  /** The entries of the index. */
  readonly is: string;
  /** Whether a version without sets wrote the index. */
  readonly unlabelled: boolean;
}

const none: TakenSet = { functions: [], rejected: [], whole: true, is: "[]", unlabelled: false };

/**
 * One set as the runtime sees it. It is used once each of the ConfigMaps that its index names exists and matches the index; until
 * then the functions that it had before stay.
 */
export class DeployedSet {
  taken: TakenSet | undefined;
  fault: WatchfireError | undefined;
  private readonly options: DeployedSetOptions;
  private readonly index: string;

  /** `isNew`: the set did not exist when the runtime read the ConfigMaps before. */
  constructor(options: DeployedSetOptions, isNew: boolean) {
    this.options = options;
    this.index = indexName(options.account, options.name);
    if (isNew) this.taken = none;
  }

  /**
   * Uses the functions that the index names now, if they are others and complete. `populated`: whether there are ConfigMaps of
   * its functions. Returns true if other functions are in use now.
   */
  consider(populated: boolean): boolean {
    const { name, held, log } = this.options;
    const entries = this.entries(populated);
    if (!entries) return false;
    const is = JSON.stringify(entries);
    const found = entries.map((entry) => inSet(held.open(entry), name));
    const objection = this.options.objection?.(name, found);
    const opened = objection ? found.map((each) => refusedFor(each, objection)) : found;
    const [damage] = opened.flatMap((each) => (each.type === "damaged" ? each.rejected.faults : []));
    const whole = damage === undefined;
    if (damage) {
      this.say(damage);
      // Without functions from before, each one is used or rejected on its own.
      if (this.taken) return false;
    }
    if (whole) this.fault = undefined;
    const { configMap } = held.index(this.index);
    const unlabelled = configMap !== undefined && !(setLabel in configMap.metadata.labels);
    if (this.taken?.is === is && this.taken.whole) {
      this.taken = { ...this.taken, unlabelled };
      return false;
    }
    const before = this.taken;
    this.taken = {
      functions: opened.flatMap((each) => (each.type === "offer" ? each.offer : [])),
      rejected: opened.flatMap((each) => (each.type === "offer" ? [] : each.rejected)),
      whole,
      is,
      unlabelled,
    };
    this.remember(configMap);
    log.info({ set: name, functions: entries.length, whole }, "deployed functions loaded");
    const changed = changedNames(before?.is, entries);
    if (whole && changed.length > 0) {
      const number = configMap && revisionOf(configMap);
      this.options.took?.({ set: name, number, changed, isEmpty: entries.length === 0, isFirst: before === undefined });
    }
    return true;
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

/** Returns the names of the functions that differ. `was`: the entries of the index before, as text. */
function changedNames(was = "[]", entries: readonly IndexEntry[]): string[] {
  const before = new Map((JSON.parse(was) as readonly IndexEntry[]).map(({ name, sha256 }) => [name, sha256]));
  const now = new Map(entries.map(({ name, sha256 }) => [name, sha256]));
  return [...new Set([...before.keys(), ...now.keys()])].filter((name) => before.get(name) !== now.get(name)).sort();
}
