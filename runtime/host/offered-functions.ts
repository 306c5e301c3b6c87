import { runtimeAccount } from "../access/account.ts";
import { ClusterSource } from "../catalog/cluster-source.ts";
import { FolderSource } from "../catalog/folder-source.ts";
import { type FunctionCode, openCode } from "../catalog/function-code.ts";
import type { FunctionSource } from "../catalog/function-source.ts";
import { IndexTrust } from "../catalog/index-trust.ts";
import { MergedSource } from "../catalog/merged-source.ts";
import type { Components, RuntimeOptions } from "./components.ts";

/** Where a runtime's functions come from, and the code that is to be closed with it. */
export interface OfferedFunctions {
  readonly source: FunctionSource;
  readonly code: FunctionCode | undefined;
}

/** The folder's functions, those that were deployed, or both. `changed` is called where those that are deployed change. */
export function offeredFunctions(
  options: RuntimeOptions,
  { watches }: Pick<Components, "watches">,
  changed: () => void,
): OfferedFunctions {
  const { functions, namespace, account = runtimeAccount, deployed, data, trust: keys, clock, log } = options;
  const code = functions === undefined ? undefined : (options.code ?? openCode(functions, clock, keys));
  const folder = options.folder ?? (functions && code && new FolderSource(functions, code));
  if (folder && !deployed) return { source: folder, code };
  const trust = keys && new IndexTrust({ keys, namespace, account, data });
  const cluster = new ClusterSource({ watches, namespace, account, trust, clock, log, changed });
  return { source: folder ? new MergedSource(folder, cluster, log) : cluster, code };
}
