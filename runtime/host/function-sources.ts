import { join } from "node:path";
import { qualifiedName } from "../access/account.ts";
import { ClusterSource, type SetLimits } from "../catalog/cluster-source.ts";
import { RevisionRecords } from "../catalog/deploy/revision-records.ts";
import type { FunctionSource } from "../catalog/function-source.ts";
import { IndexTrust } from "../catalog/index-trust.ts";
import { MergedSource } from "../catalog/merged-source.ts";
import { SharedSource } from "../catalog/shared-source.ts";
import type { AuditLog } from "../control/access/audit-log.ts";
import { RevisionAudit } from "../control/access/revision-audit.ts";
import type { PausedSets } from "../control/paused-sets.ts";
import type { Components, RuntimeOptions } from "./components.ts";

/**
 * Limits of each other namespace: a team must not take the memory or the time of the others. ConfigMaps are packed, and code is
 * unpacked only as far as an index names it.
 */
const sharedLimits: SetLimits = {
  functions: 20,
  memoryBytes: 2 * 2 ** 30,
  codeBytes: 16 * 2 ** 20,
  groups: 4,
  heldBytes: 8 * 2 ** 20,
  restMs: 1_000,
};

interface SourceParts {
  readonly options: RuntimeOptions & { readonly account: string };
  readonly folder: FunctionSource | undefined;
  readonly components: Pick<Components, "watches" | "pausedSets">;
  readonly audit: AuditLog;
  /** Whether this replica writes about a function. */
  readonly isOwn: (functionName: string) => boolean;
  /** Called when other functions are available. */
  readonly changed: () => void;
}

/** The functions of a runtime. */
export interface FunctionSources {
  readonly all: FunctionSource;
  /** Those of the folder and of the runtime's own namespace. Nothing that is wrong elsewhere keeps the runtime from being ready. */
  readonly own: FunctionSource;
  /** The deployed sets, by namespace. */
  readonly sets: ReadonlyMap<string, DeployedSets>;
}

/** The deployed sets of one namespace. */
export interface DeployedSets {
  readonly source: Pick<ClusterSource, "states">;
  readonly records: RevisionRecords;
}

/** Returns the sources of functions: the folder, and what was deployed into the runtime's namespace and into those that share it. */
export function functionSources({ options, folder, components, audit, isOwn, changed }: SourceParts): FunctionSources {
  const { namespace: home, account, deployed, data, trust: keys, transport, clock, log } = options;
  if (folder && !deployed) return { all: folder, own: folder, sets: new Map() };
  const sets = new Map<string, DeployedSets>();
  const sourceIn = (namespace: string) => {
    const isHome = namespace === home;
    const trustData = isHome ? data : join(data, "signed-sets", namespace);
    const records = new RevisionRecords(transport, { namespace, account });
    const revisions = new RevisionAudit({
      records,
      namespace,
      audit,
      ...(!isHome && { nameOf: (name: string) => qualifiedName(name, namespace) }),
      isOwn,
    });
    const source = new ClusterSource({
      watches: components.watches,
      namespace,
      account,
      trust: keys && new IndexTrust({ keys, namespace, account, data: trustData }),
      ...(!isHome && { limits: { ...sharedLimits, ...options.setLimits } }),
      clock,
      log,
      changed,
      took: (revision) => revisions.took(revision),
    });
    sets.set(namespace, { source, records });
    const paused = components.pausedSets.get(namespace);
    return paused ? knowingPauses(source, paused) : source;
  };
  const own = folder ? new MergedSource(folder, sourceIn(home), log) : sourceIn(home);
  const shared = (options.setNamespaces ?? []).map((namespace) => new SharedSource(namespace, sourceIn(namespace)));
  // Names of two namespaces differ, so that nothing is hidden.
  return { own, sets, all: shared.reduce<FunctionSource>((all, source) => new MergedSource(source, all, log), own) };
}

/** The functions of a namespace, once it is known which of its sets are paused: no handler of those may start. */
const knowingPauses = (source: ClusterSource, paused: Pick<PausedSets, "known">): FunctionSource => ({
  get trouble() {
    return source.trouble;
  },
  read: async (signal) => {
    await paused.known(signal);
    return source.read(signal);
  },
});
