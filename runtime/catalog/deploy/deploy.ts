import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { ApiObjects, type AppliedObject, type ClusterObject, nameOf } from "../api-objects.ts";
import { canaryData, canaryText, readCanary } from "../canary.ts";
import { readConfigMap } from "../config-map.ts";
import {
  type IndexEntry,
  indexConfigMap,
  indexData,
  indexText,
  revisionOf,
  type SetIdentity,
  signatureOf,
} from "../deployed-index.ts";
import { defaultSet, labelsOf, setLabel } from "../names.ts";
import { type PackedFunction, unpackFunction } from "../packed-function.ts";
import type { SigningKey } from "../signature.ts";
import { type DeployedState, isDeployed, lookBefore } from "./before.ts";
import { canaryEntries } from "./canary.ts";
import { DeployLock, isLocked, untilAbandoned } from "./deploy-lock.ts";
import { type FunctionChange, functionChanges } from "./function-changes.ts";
import { readHistory, type SetHistory } from "./history.ts";
import { IndexSigner } from "./index-signer.ts";
import { labelled } from "./rendered.ts";
import type { RevisionNote } from "./revision.ts";
import { planRevision, type RevisionPlan } from "./revision-plan.ts";
import { hasContent, rightsChanges, rulesBeyond, rulesOf } from "./rights-changes.ts";

/**
 * Delay between the writing of new code and the removal of the old code's rights, in milliseconds. The runtime uses new code
 * within a second of its being written, and most handlers end within another few.
 */
const handOverMs = 5_000;

export interface DeployPlan extends SetIdentity {
  readonly transport: KubeTransport;
  /** All functions of the set; others that it has are removed. */
  readonly functions: readonly PackedFunction[];
  /** Their accounts, roles and bindings, in the order in which to apply them. */
  readonly objects: readonly AppliedObject[];
  /** True if accounts and rights are neither read nor written, so that `objects` is empty and those that are there stay. */
  readonly codeOnly?: boolean;
  /** Signs the indexes. Default: no signature. */
  readonly key?: SigningKey | undefined;
  readonly clock: Clock;
  /** Name of the user who deploys, shown to others who deploy at the same time. */
  readonly holder: string;
  /** Called with the holder's name and the longest wait, before waiting for another deployment, or one that was killed. */
  readonly waiting: (who: string, limitMs: number) => void;
  /** Recorded as a revision of the set. Default: no revision is recorded, and those of the set are deleted. */
  readonly note?: RevisionNote | undefined;
  /**
   * The percentage of keys that the functions get as a canary, while the current code has the others; 0: the functions are the current ones, and
   * the canary ends. Needs a note, makes no revision, and takes no objects. Default: all keys, and a canary ends.
   */
  readonly canary?: number | undefined;
  /** The id of the canary that is promoted or aborted. If another one runs by then, it is refused. Default: no check. */
  readonly endsCanary?: string | undefined;
  /** Called with what would change, before anything is written. If it resolves with false, nothing is. */
  readonly approve: (report: DeployReport) => Promise<boolean>;
}

export interface DeployReport {
  /** Outcome for each function, by name. */
  readonly functions: readonly { readonly name: string; readonly fate: FunctionChange }[];
  /** Functions that were deployed before there were sets, and which this set takes over. */
  readonly takenOver: readonly string[];
  /** Others of those, which stay in the set `default`. */
  readonly left: readonly string[];
  /** Whether nothing has to be written. */
  readonly isDone: boolean;
  /** Created and changed accounts and rights, a line each, and indented below it what changes in a role. */
  readonly rights: readonly string[];
  /** Deleted objects of earlier deployments, such as `Role team-a/watchfire-greet.watchfire`. */
  readonly deleted: readonly string[];
  /** ConfigMaps whose code stays in a copy, for a rollback. */
  readonly kept: readonly string[];
  /** Numbers of the revisions that are no longer kept, oldest first. */
  readonly forgotten: readonly number[];
  /** Whether a new revision is recorded, with its message. */
  readonly isRecorded: boolean;
  /** Whether accounts and rights of earlier deployments were searched in every namespace. */
  readonly prunedEverywhere: boolean;
  /** Whether an unsigned index replaced a signed one. */
  readonly unsigned: boolean;
  /** Number of the revision that the set has afterwards. `undefined` if no revision is recorded. */
  readonly revision: number | undefined;
  /** Functions whose canary ends, unasked. */
  readonly canaryOf: readonly string[];
  /** By function: the text of the previously deployed manifest, if it can be read. */
  readonly manifestsBefore: ReadonlyMap<string, string>;
}

/** Changes that a deployment makes to the cluster. */
interface Steps {
  /** Functions of the index. */
  readonly entries: readonly IndexEntry[];
  /** Functions whose new code is a canary. */
  readonly canary: readonly IndexEntry[];
  /** ConfigMaps of functions that are missing or damaged. */
  readonly missing: readonly AppliedObject[];
  /** ConfigMaps of functions that only lack the set's label. */
  readonly unlabelled: readonly AppliedObject[];
  /** Existing objects under the names of the missing ones. */
  readonly incomplete: readonly ClusterObject[];
  /** The plan's objects, applied first; roles also keep their present rules, which running functions still need. */
  readonly first: readonly AppliedObject[];
  /** The same roles without the old rules. */
  readonly narrowed: readonly AppliedObject[];
  /** ConfigMaps and rights that are not needed afterwards. */
  readonly superseded: readonly ClusterObject[];
  readonly stale: readonly ClusterObject[];
}

/**
 * Replaces the functions of a set, under the lock of its runtime, so that only one deployment writes at a time. The set's index is
 * changed after all that it names has been written, so that a runtime never sees a partial set. Superseded objects are deleted
 * after that. A deployment that fails earlier deletes what it created. One that is killed leaves the running set intact; the next
 * waits until the lock has expired, and cleans up.
 * @throws WatchfireError WF_DEPLOYED_TAKEN and WF_DEPLOYED_REFUSED, before anything is written if the API server can tell;
 * WF_DEPLOYED_CONFLICT
 */
export async function deploy(given: DeployPlan): Promise<DeployReport> {
  const plan = { ...given, ...labelled(given) };
  const { transport, functions, objects, clock, set, note } = plan;
  const home = indexConfigMap({ ...plan, set: defaultSet }, {});
  const empty = indexConfigMap(plan, {});
  const api = new ApiObjects(transport);
  const parts = { api, clock, holder: plan.holder, set };
  const planned = [...objects, ...functions.map(({ configMap }) => configMap), home, empty];
  const names = new Set(functions.map(({ name }) => name));
  let abandoned: string | undefined;
  let before: DeployedState;
  // Another deployment may begin in between.
  do {
    abandoned = await untilAbandoned(parts, home, plan.waiting);
    before = await lookBefore(api, planned, names, plan, plan.codeOnly);
  } while (before.lock && isLocked(before.lock) && before.lock.metadata.resourceVersion !== abandoned);
  const history = await readHistory(api, plan, before.index);
  if (note?.replaces !== undefined && note.replaces !== history.current) {
    throw new WatchfireError("WF_DEPLOYED_CONFLICT", {
      what: `the revision ${note.replaces} is no longer the current one of the set ${set}`,
    });
  }
  const index = readConfigMap(before.index);
  const running = index && readCanary(index);
  if (plan.endsCanary !== undefined && plan.endsCanary !== running?.id) {
    throw new WatchfireError("WF_DEPLOYED_CONFLICT", { what: `the canary of the set ${set} is another one by now` });
  }
  const steps = stepsFrom(before, plan);
  const recording =
    plan.canary === undefined
      ? planRevision(history, before, steps, plan)
      : { ...nothingRecorded, number: index && revisionOf(index) };
  const indexes = indexesAfter(before, steps, plan, recording.number);
  const isKept = plan.canary === undefined && !running?.functions.length;
  const done = isKept && isDone(before, steps) && indexes.isSigned;
  const report = {
    canaryOf: plan.endsCanary === undefined ? (running?.functions ?? []).map(({ name }) => name) : [],
    functions: functionChanges(
      before.entries,
      entriesFor(functions),
      new Set(steps.missing.map(({ metadata }) => metadata.name)),
    ),
    takenOver: before.former.taken.map(({ name }) => name),
    left: before.former.left.map(({ name }) => name),
    isDone: done,
    rights: rightsChanges(objects, before.rights),
    deleted: [...steps.superseded.filter((each) => !recording.moved.has(each.metadata.name)), ...steps.stale].map(
      nameOf,
    ),
    kept: steps.superseded.filter((each) => recording.moved.has(each.metadata.name)).map(nameOf),
    forgotten: done ? [] : forgottenBy(history, recording),
    isRecorded: !done && recording.isNew,
    prunedEverywhere: before.everywhere,
    unsigned: false,
    revision: done ? history.current : recording.number,
    manifestsBefore: manifestsOf(before),
  };
  if (!(await plan.approve(report)) || report.isDone) return report;
  const added = steps.incomplete.length === 0 ? steps.missing : [];
  await api.tryApply([...steps.first, ...steps.unlabelled, ...added]);
  // Records are immutable: another deployment may have written this number by now.
  await api.tryCreate(recording.records);
  // Without the label, others may still take over what `default` has.
  const labels =
    set === defaultSet
      ? empty.metadata.labels
      : (before.lock?.metadata.labels ?? labelsOf(plan.account, plan.namespace));
  const lock = await DeployLock.take(parts, { ...home, metadata: { ...home.metadata, labels } }, before.lock);
  const writer = new ApiObjects(transport, () => lock.held());
  let isDeployed = false;
  try {
    await apply(writer, before, { ...steps, records: recording.records });
    if (set === defaultSet) await lock.set(indexes.own());
    else {
      await lock.held();
      await api.replace({ ...empty, data: indexes.own() }, before.index?.metadata.resourceVersion);
      // Until now both indexes named what is taken over: nothing stops in between.
      if (before.former.taken.length > 0) await lock.set(indexes.former());
    }
    isDeployed = true;
    await cleanUp(writer, { ...steps, ...recording }, clock).catch(notAllGone);
  } catch (error) {
    await lock.release(isDeployed).catch(() => undefined);
    throw error;
  }
  await lock.release(true);
  return { ...report, unsigned: indexes.losesSignature };
}

/** Returns the numbers of the revisions whose records are deleted. */
function forgottenBy({ revisions }: SetHistory, { dropped }: RevisionPlan): number[] {
  const gone = new Set(dropped.map(({ metadata }) => metadata.name));
  const numbers = revisions.flatMap(({ number, configMap }) => (gone.has(configMap.metadata.name) ? number : []));
  return numbers.sort((a, b) => a - b);
}

/** A canary records no revision, and what is kept of earlier ones stays. */
const nothingRecorded = { records: [], copies: [], dropped: [], moved: new Set<string>(), isNew: false };

const entriesFor = (functions: readonly PackedFunction[]): IndexEntry[] =>
  functions.map(({ name, sha256, configMap }) => ({ name, configMap: configMap.metadata.name, sha256 }));

/** Content of the set's index, and of that of `default` without what is taken over from it. */
function indexesAfter(
  { index, lock, former }: DeployedState,
  { entries, canary }: Steps,
  plan: DeployPlan,
  revision: number | undefined,
) {
  const old = readConfigMap(index);
  const formerly = readConfigMap(lock);
  const signerOf = (set: string) => plan.key && new IndexSigner(plan.key, { ...plan, set }, plan.clock);
  const signer = signerOf(plan.set);
  const changed = [old, ...(former.taken.length > 0 ? [formerly] : [])];
  const { note, clock } = plan;
  const own = () => {
    const sign = signer?.after(old);
    if (plan.canary === undefined || !note) return indexData(entries, sign, revision);
    const { by, git, message } = note;
    const at = new Date(clock.now()).toISOString();
    const share = plan.canary || ((old && readCanary(old)?.share) ?? 0);
    const text = canaryText({ share, at, by, git, message, functions: [...canary] }, indexText(entries));
    return indexData(entries, sign, revision, canaryData({ text, signature: sign?.(text, "deployed-canary") }));
  };
  return {
    own,
    former: () => indexData(former.left, signerOf(defaultSet)?.after(formerly)),
    isSigned: !signer || (old !== undefined && signer.isSigned(old)),
    losesSignature: !signer && changed.some((each) => each !== undefined && signatureOf(each) !== undefined),
  };
}

function stepsFrom(before: DeployedState, plan: DeployPlan): Steps {
  const { functions, objects, set, namespace } = plan;
  const all = entriesFor(functions);
  const canary = plan.canary ? canaryEntries(before, all, functions, set) : [];
  const entries = canary.length > 0 ? before.entries : all;
  const isThere = new Set(before.configMaps.filter((found) => isSound(found, all)).map(nameOf));
  const configMaps = functions.map(({ configMap }) => configMap);
  const missing = configMaps.filter((configMap) => !isThere.has(nameOf(configMap)));
  const lacking = new Set(missing.map(nameOf));
  const found = new Map(before.configMaps.map((each) => [nameOf(each), each]));
  const first = objects.map((object) => widened(object, before.rights));
  const named = entries.map(({ configMap: name }) => ({ kind: "ConfigMap", metadata: { name, namespace } }));
  const wanted = new Set([...objects, ...configMaps, ...named].map(nameOf));
  return {
    entries,
    canary,
    missing,
    unlabelled: configMaps.flatMap((each) => {
      const there = isThere.has(nameOf(each)) ? found.get(nameOf(each)) : undefined;
      if (!there || setLabel in there.metadata.labels) return [];
      // Its data cannot be changed, and another version of zlib compresses otherwise.
      const { data, binaryData } = readConfigMap(there) ?? {};
      return { ...each, data, binaryData };
    }),
    incomplete: before.configMaps.filter((found) => lacking.has(nameOf(found))),
    first,
    narrowed: objects.filter((object, at) => object !== first[at]),
    superseded: before.configMaps.filter((found) => !wanted.has(nameOf(found))),
    stale: before.rights.filter((found) => isDeployed(found) && !wanted.has(nameOf(found))),
  };
}

/** Whether the cluster already has the wanted state, so that nothing is written. That is not so while the index is locked. */
function isDone({ index, lock, former, entries, rights }: DeployedState, steps: Steps): boolean {
  const { missing, unlabelled, narrowed, superseded, stale, first } = steps;
  if (!index || !(setLabel in index.metadata.labels) || (lock && isLocked(lock)) || former.taken.length > 0)
    return false;
  if (indexText(entries) !== indexText(steps.entries)) return false;
  if (missing.length + unlabelled.length + narrowed.length + superseded.length + stale.length > 0) return false;
  const found = new Map(rights.map((each) => [nameOf(each), each]));
  return first.every((object) => isAs(object, found.get(nameOf(object))));
}

function isAs(object: AppliedObject, found: ClusterObject | undefined): boolean {
  const { labels } = object.metadata;
  if (!found || Object.entries(labels).some(([label, value]) => found.metadata.labels[label] !== value)) return false;
  return hasContent(object, found);
}

/** Creates what the new set needs, and deletes it again on failure. */
async function apply(
  writer: ApiObjects,
  { rights, configMaps }: DeployedState,
  steps: Steps & Pick<RevisionPlan, "records">,
): Promise<void> {
  const { first, missing, unlabelled, incomplete, records } = steps;
  const old = new Map([...rights, ...configMaps].map((found) => [nameOf(found), found]));
  const made: ClusterObject[] = [];
  const applied = (found: ClusterObject) => {
    if (!old.has(nameOf(found))) made.push(found);
  };
  try {
    await writer.delete(incomplete);
    // Applies accounts before roles, roles before bindings; those of one kind concurrently.
    for (const [, alike] of Map.groupBy(first, ({ kind }) => kind)) await writer.apply(alike, applied);
    await writer.apply([...missing, ...unlabelled], applied);
    await writer.create(records, applied);
  } catch (error) {
    const changed = [...first, ...unlabelled].flatMap((object) => {
      const found = old.get(nameOf(object));
      return found ? restored(object, found) : [];
    });
    // Objects that cannot be deleted now carry our labels, so the next deployment deletes them.
    await writer.delete(made.toReversed()).catch(() => undefined);
    await writer.apply(changed).catch(() => undefined);
    throw error;
  }
}

/** Returns the object with its former rules, and without the set's label if that is new. Nothing if it had both. */
function restored(object: AppliedObject, { rules, metadata }: ClusterObject): AppliedObject[] {
  const { [setLabel]: set, ...labels } = object.metadata.labels;
  const isLabelled = setLabel in metadata.labels;
  if (isLabelled && rules === undefined) return [];
  const before = isLabelled ? object.metadata : { ...object.metadata, labels };
  return [{ ...object, ...(rules !== undefined && { rules }), metadata: before }];
}

async function cleanUp(
  writer: ApiObjects,
  { superseded, stale, narrowed, copies, dropped }: Steps & RevisionPlan,
  clock: Clock,
): Promise<void> {
  await writer.create(copies);
  await writer.delete([...superseded, ...dropped]);
  if (stale.length + narrowed.length > 0) await pause(clock, handOverMs);
  await writer.apply(narrowed);
  // Deletes bindings before the roles they name, and accounts last.
  await writer.delete(stale.toReversed());
}

function notAllGone(error: unknown): never {
  // After a conflict another deployment's functions run, or soon will.
  if (!(error instanceof WatchfireError) || error.code === "WF_DEPLOYED_CONFLICT") throw error;
  const hint = "the new functions run, but some replaced objects are not deleted: correct the cause and deploy again";
  throw new WatchfireError(error.code, { ...error.detail, hint });
}

/** Returns the texts of the manifests that the index names, except damaged ones. */
function manifestsOf({ configMaps, entries }: DeployedState): ReadonlyMap<string, string> {
  return new Map(
    entries.flatMap((entry) => {
      const found = configMaps.find(({ metadata }) => metadata.name === entry.configMap);
      if (!found || !isSound(found, [entry])) return [];
      const configMap = readConfigMap(found);
      return configMap ? [[entry.name, unpackFunction(configMap).manifest] as const] : [];
    }),
  );
}

/** Whether a ConfigMap matches the new index. */
function isSound(found: ClusterObject, entries: readonly IndexEntry[]): boolean {
  const entry = entries.find(({ configMap }) => configMap === found.metadata.name);
  const configMap = entry && readConfigMap(found);
  if (!configMap) return false;
  try {
    return unpackFunction(configMap).sha256 === entry.sha256;
  } catch (error) {
    if (error instanceof WatchfireError) return false;
    throw error;
  }
}

/** Returns a role with its present rules in the cluster added; the object itself if there are no others. */
function widened(object: AppliedObject, existing: readonly ClusterObject[]): AppliedObject {
  const found = existing.find((each) => nameOf(each) === nameOf(object));
  const more = rulesBeyond(found, object);
  return more.length === 0 ? object : { ...object, rules: [...rulesOf(object), ...more] };
}
