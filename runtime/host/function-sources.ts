import { join } from "node:path";
import { qualifiedName } from "../access/account.ts";
import { ClusterSource, type SetLimits } from "../catalog/cluster-source.ts";
import type { FunctionSource } from "../catalog/function-source.ts";
import { IndexTrust } from "../catalog/index-trust.ts";
import { MergedSource } from "../catalog/merged-source.ts";
import { SharedSource } from "../catalog/shared-source.ts";
import type { AuditLog } from "../control/access/audit-log.ts";
import { RevisionAudit } from "../control/access/revision-audit.ts";
import type { Informers } from "../informer/informers.ts";
import type { RuntimeOptions } from "./components.ts";

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
  readonly watches: Informers;
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
}

/** Returns the sources of functions: the folder, and what was deployed into the runtime's namespace and into those that share it. */
export function functionSources({ options, folder, watches, audit, isOwn, changed }: SourceParts): FunctionSources {
  const { namespace: home, account, deployed, data, trust: keys, transport, clock, log } = options;
  if (folder && !deployed) return { all: folder, own: folder };
  const sourceIn = (namespace: string) => {
    const isHome = namespace === home;
    const trustData = isHome ? data : join(data, "signed-sets", namespace);
    const revisions = new RevisionAudit({
      transport,
      namespace,
      account,
      audit,
      ...(!isHome && { nameOf: (name: string) => qualifiedName(name, namespace) }),
      isOwn,
    });
    return new ClusterSource({
      watches,
      namespace,
      account,
      trust: keys && new IndexTrust({ keys, namespace, account, data: trustData }),
      ...(!isHome && { limits: { ...sharedLimits, ...options.setLimits } }),
      clock,
      log,
      changed,
      took: (revision) => revisions.took(revision),
    });
  };
  const own = folder ? new MergedSource(folder, sourceIn(home), log) : sourceIn(home);
  const shared = (options.setNamespaces ?? []).map((namespace) => new SharedSource(namespace, sourceIn(namespace)));
  // Names of two namespaces differ, so that nothing is hidden.
  return { own, all: shared.reduce<FunctionSource>((all, source) => new MergedSource(source, all, log), own) };
}
