import { WatchfireError } from "../../base/errors.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import { ApiObjects } from "../api-objects.ts";
import { readConfigMap } from "../config-map.ts";
import { indexConfigMap, type SetIdentity } from "../deployed-index.ts";
import type { FunctionParts } from "../function-parts.ts";
import { keptName } from "../names.ts";
import { type PackedFunction, placeOf, repackFunction } from "../packed-function.ts";
import type { TrustedKeys } from "../signature.ts";
import { readHistory, type SetHistory } from "./history.ts";
import { distrustOf, entriesOf, type Revision } from "./revision.ts";

/** Reads the revisions of a set. @throws WatchfireError WF_DEPLOYED_REFUSED if ConfigMaps may not be listed */
export async function revisionsOf(transport: KubeTransport, identity: SetIdentity): Promise<SetHistory> {
  const api = new ApiObjects(transport);
  const [index] = await api.find([indexConfigMap(identity, {})]);
  return readHistory(api, identity, index);
}

/**
 * Returns the revision of that number; without a number, the newest before the current one whose code is another.
 * @throws WatchfireError WF_DEPLOYED_NO_REVISION
 */
export function revisionToRestore(
  { revisions, current, digest }: SetHistory,
  to: number | undefined,
  { set }: SetIdentity,
): Revision {
  const fault = (what: string) => new WatchfireError("WF_DEPLOYED_NO_REVISION", { what });
  if (to !== undefined) {
    const found = revisions.find(({ number }) => number === to);
    if (found) return found;
    const numbers = revisions.map(({ number }) => number).join(", ");
    throw fault(`the set ${set} has no revision ${to}; it has ${numbers || "no revision at all"}`);
  }
  // After a deployment that recorded no revision, the newest recorded one is before it, unless it has the same code.
  const found = revisions.find((each) => (current === undefined || each.number < current) && each.digest !== digest);
  if (found) return found;
  throw fault(`the set ${set} has no revision before ${current === undefined ? "this one" : `revision ${current}`}`);
}

/** Functions of a revision, ready to be deployed again. */
export type RestoredFunction = PackedFunction & { readonly parts: FunctionParts };

/**
 * Reads the code and the manifests of a revision, and checks that they are those that were deployed.
 * @param keys of which one must have signed the revision; `undefined`: any revision is accepted
 * @throws WatchfireError WF_DEPLOYED_UNTRUSTED; WF_DEPLOYED_REVISION_GONE with everything that is missing or changed
 */
export async function readRevisionCode(
  transport: KubeTransport,
  identity: SetIdentity,
  { revision, copies }: { readonly revision: Revision; readonly copies: SetHistory["copies"] },
  keys: TrustedKeys | undefined,
): Promise<readonly RestoredFunction[]> {
  const { account, namespace, set } = identity;
  const distrust = keys && distrustOf(revision, identity, keys);
  if (distrust !== undefined) {
    throw new WatchfireError("WF_DEPLOYED_UNTRUSTED", {
      what: `the revision ${revision.number} of the set ${set}: ${distrust}`,
      place: { file: placeOf(revision.configMap.metadata.name) },
      hint: "roll back to one that a key of --sign or --trust signed, or deploy the code from its sources",
    });
  }
  const entries = entriesOf(revision, account);
  const nameOfCopy = (entry: (typeof entries)[number]) => keptName(account, set, entry.name, entry.sha256);
  const uncopied = entries.filter((entry) => !copies.has(nameOfCopy(entry)));
  const wanted = uncopied.map(({ configMap: name }) => ({ kind: "ConfigMap", metadata: { name, namespace } }));
  const running = new Map(
    (await new ApiObjects(transport).find(wanted)).map((found) => [found.metadata.name, found] as const),
  );
  const faults: WatchfireError[] = [];
  const restored = entries.flatMap((entry) => {
    const copy = copies.get(nameOfCopy(entry)) ?? running.get(entry.configMap);
    const fault = (what: string) =>
      new WatchfireError("WF_DEPLOYED_REVISION_GONE", {
        what: `of the revision ${revision.number} of the set ${set}, ${what}`,
        place: { file: placeOf(copy?.metadata.name ?? nameOfCopy(entry)) },
      });
    const configMap = copy && readConfigMap(copy);
    if (!configMap) {
      faults.push(fault(`the function ${entry.name} is missing`));
      return [];
    }
    try {
      const found = repackFunction(entry.name, configMap, identity);
      if (found.sha256 === entry.sha256) return [found];
      faults.push(fault(`the function ${entry.name} is not what was deployed`));
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      faults.push(fault(`the function ${entry.name} cannot be read: ${error.detail.what}`));
    }
    return [];
  });
  const [first, ...more] = faults;
  if (first) throw new WatchfireError(first.code, { ...first.detail, more });
  return restored;
}
