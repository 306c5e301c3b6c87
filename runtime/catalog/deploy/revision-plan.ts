import type { Clock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { ClusterObject } from "../api-objects.ts";
import { readConfigMap } from "../config-map.ts";
import type { IndexEntry, SetIdentity } from "../deployed-index.ts";
import { configMapName, functionLabel } from "../names.ts";
import { unpackFunction } from "../packed-function.ts";
import type { SigningKey } from "../signature.ts";
import type { DeployedState } from "./before.ts";
import { type HistoryChange, historyAfter, nothingKept, type SetHistory } from "./history.ts";
import { IndexSigner } from "./index-signer.ts";
import { digestOf, distrustOf, type RevisionNote, revisionConfigMap } from "./revision.ts";

interface RevisionRequest extends SetIdentity {
  /** Default: nothing is recorded, and nothing is kept. */
  readonly note?: RevisionNote | undefined;
  /** Signs the records. Default: no signature. */
  readonly key?: SigningKey | undefined;
  readonly clock: Clock;
}

/** The records that a deployment writes, and the changes of what is kept of earlier ones. */
export interface RevisionPlan extends HistoryChange {
  /** Number of the revision that the set has afterwards; `undefined` if it has no revision. */
  readonly number: number | undefined;
  /** Whether a new revision is written. */
  readonly isNew: boolean;
}

/**
 * Plans the record of a deployment. One that repairs rights, labels or locks, and whose code and manifests are those of the
 * current revision, is no new revision, because it would make older ones go. Code that a version without revisions deployed is recorded as well, so that it can be rolled
 * back to.
 */
export function planRevision(
  history: SetHistory,
  before: DeployedState,
  { entries, superseded }: { readonly entries: readonly IndexEntry[]; readonly superseded: readonly ClusterObject[] },
  plan: RevisionRequest,
): RevisionPlan {
  const { note, key, clock, account } = plan;
  if (!note) return { ...nothingKept(history), number: undefined, isNew: false };
  const step = { identity: plan, entries, superseded: byName(superseded, account) };
  const current = history.revisions.find(({ number }) => number === history.current);
  const isCurrent = current?.digest === digestOf(entries) && !(key && distrustOf(current, plan, key.trusted));
  if (isCurrent) return { ...historyAfter(history, [], step), number: current.number, isNew: false };
  // The same functions, deployed again, are recorded once.
  const former =
    isRecorded(history, before) || history.digest === digestOf(entries) ? [] : [formerRecord(history, before, plan)];
  const number = history.next + former.length;
  const own = revisionConfigMap(plan, note, { number, at: clock.now(), entries, key });
  return { ...historyAfter(history, [own, ...former], step), number, isNew: true };
}

/** True if the index's content has a record, or needs no record. */
function isRecorded({ revisions, current }: SetHistory, { entries, former }: DeployedState): boolean {
  if (entries.length === 0 || former.taken.length > 0) return true;
  const found = revisions.find(({ number }) => number === current);
  return found?.digest === digestOf(entries);
}

function formerRecord({ next }: SetHistory, { index, entries }: DeployedState, plan: RevisionRequest) {
  const { key, clock } = plan;
  const configMap = readConfigMap(index);
  // Signing what this key did not sign would make it trusted.
  const isSigned = key && configMap && new IndexSigner(key, plan, clock).isSigned(configMap);
  const by = { unknown: "it was applied as YAML, or deployed by a version that records no revisions" };
  const note = { by, git: null, message: "", kinds: [] };
  return revisionConfigMap(plan, note, { number: next, at: null, entries, key: isSigned ? key : undefined });
}

/** Returns the ConfigMaps whose content is the one that their name stands for, by name. */
function byName(found: readonly ClusterObject[], account: string): ReadonlyMap<string, ClusterObject> {
  const sound = found.filter((each) => {
    const { metadata } = each;
    try {
      const configMap = readConfigMap(each);
      const sha256 = configMap && unpackFunction(configMap).sha256;
      return sha256 && configMapName(account, metadata.labels[functionLabel] ?? "", sha256) === metadata.name;
    } catch (error) {
      if (error instanceof WatchfireError) return false;
      throw error;
    }
  });
  return new Map(sound.map((each) => [each.metadata.name, each]));
}
