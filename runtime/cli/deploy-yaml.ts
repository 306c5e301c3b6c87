import { stringify } from "yaml";
import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { renderedObjects } from "../catalog/deploy/rendered.ts";
import type { PackedFunction } from "../catalog/packed-function.ts";
import type { SigningKey } from "../catalog/signature.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { KnownKinds } from "../rbac/kinds.ts";
import type { RulesOptions } from "../rbac/rules.ts";
import { deployedRbac } from "./deployed-rbac.ts";

interface RenderParts {
  readonly set: string;
  readonly rules: RulesOptions;
  readonly kinds: KnownKinds;
  readonly packed: readonly PackedFunction[];
  readonly manifests: readonly FunctionManifest[];
  readonly key: SigningKey | undefined;
  /** Without accounts and rights. */
  readonly codeOnly: boolean;
  /** `SOURCE_DATE_EPOCH`, in seconds: the time of the signature. Default: now. */
  readonly epoch: string | undefined;
}

/**
 * Returns all objects of a set as YAML documents, in a stable order: the same sources give the same text. A signature contains the
 * time, so that it is stable only with `epoch`.
 * @throws WatchfireError WF_CLI_ENVIRONMENT for an invalid `SOURCE_DATE_EPOCH`
 */
export function setYaml({ set, rules, kinds, packed, manifests, key, codeOnly, epoch }: RenderParts): string {
  const objects = codeOnly ? [] : deployedRbac(manifests, kinds, rules);
  const clock = epoch === undefined ? systemClock : { now: () => readEpoch(epoch) };
  const rendered = renderedObjects({ ...rules, set, functions: packed, objects, key, clock });
  // Folded lines would make one change of a text many.
  return rendered.map((object) => `---\n${stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })}`).join("");
}

/** Returns epoch milliseconds. */
function readEpoch(text: string): number {
  if (/^\d{1,11}$/.test(text)) return Number(text) * 1000;
  throw new WatchfireError("WF_CLI_ENVIRONMENT", { what: "SOURCE_DATE_EPOCH takes seconds since 1970", actual: text });
}
