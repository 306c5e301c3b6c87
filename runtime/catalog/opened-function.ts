import { WatchfireError } from "../base/errors.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { bundleOf } from "../bundle/script-bundle.ts";
import { checkExpression } from "../engine/filter/check-expression.ts";
import { readManifests } from "../manifest/read.ts";
import type { ConfigMap } from "./config-map.ts";
import type { IndexEntry } from "./deployed-index.ts";
import type { FunctionParts } from "./function-parts.ts";
import type { FunctionOffer, Origin, RejectedOffer } from "./function-source.ts";
import { defaultSet } from "./names.ts";
import { placeOf, sourceMapOf, unpackFunction } from "./packed-function.ts";

/**
 * Result of opening one entry of the index. `refused`: its content is what was deployed, but this runtime cannot run it;
 * `damaged`: its content is missing or differs from what was deployed.
 */
export type OpenedFunction =
  | { readonly type: "offer"; readonly offer: FunctionOffer; readonly codeBytes: number }
  | { readonly type: "refused" | "damaged"; readonly rejected: RejectedOffer };

/**
 * Opens an entry of `default`; only content of the ConfigMap that matches the entry's hash is trusted. See `inSet`.
 * @param manifestLimit most characters of the manifest. Default: no limit
 */
export function openFunction(
  entry: IndexEntry,
  configMap: ConfigMap | undefined,
  manifestLimit = Number.POSITIVE_INFINITY,
): OpenedFunction {
  const file = placeOf(entry.configMap);
  if (!configMap) return damaged(entry, fault("is not there", file));
  let parts: FunctionParts & { readonly sha256: string };
  try {
    parts = unpackFunction(configMap);
  } catch (error) {
    if (!(error instanceof WatchfireError)) throw error;
    return damaged(entry, error);
  }
  if (parts.sha256 !== entry.sha256) return damaged(entry, fault("does not hold what was deployed", file));
  if (parts.manifest.length > manifestLimit) {
    const what = `the manifest has ${parts.manifest.length} characters, and may have ${manifestLimit}`;
    return damaged(entry, new WatchfireError("WF_DEPLOYED_LIMIT", { what, place: { file } }));
  }
  const [read, ...more] = readManifests(parts.manifest, file, undefined, checkExpression);
  if (!read || more.length > 0) return damaged(entry, fault("holds no single manifest", file));
  const { manifest, faults } = read;
  if (!manifest) return { type: "refused", rejected: { name: entry.name, file, faults, origin: originOf(entry) } };
  if (manifest.name !== entry.name) return damaged(entry, fault(`is the manifest of ${manifest.name}`, file));
  const unpacked = sourceMapOf(configMap);
  // The map is unpacked on demand: many whole maps, for stacks that may never occur, could exceed the container's memory.
  const bundle: Bundle = {
    ...bundleOf(parts.script, ""),
    sourceMapLength: parts.sourceMap.length,
    get sourceMap() {
      return unpacked();
    },
  };
  const offer = { manifest, origin: originOf(entry), bundle: async () => bundle };
  return { type: "offer", offer, codeBytes: parts.script.length };
}

/** Returns the result for the same entry in the index of another set. While a set takes over a function, two indexes name it. */
export function inSet(opened: OpenedFunction, set: string): OpenedFunction {
  const moved = <T extends { readonly origin: Origin }>(offer: T): T => ({
    ...offer,
    origin: { ...offer.origin, set },
  });
  return opened.type === "offer"
    ? { ...opened, offer: moved(opened.offer) }
    : { ...opened, rejected: moved(opened.rejected) };
}

const originOf = ({ configMap, sha256 }: IndexEntry): Origin => ({
  type: "config-map",
  name: configMap,
  sha256,
  set: defaultSet,
});

/** Returns the result for an entry that cannot be used: what ran before continues. */
export const damaged = (entry: IndexEntry, found: WatchfireError): OpenedFunction => ({
  type: "damaged",
  rejected: { name: entry.name, file: placeOf(entry.configMap), faults: [found], origin: originOf(entry) },
});

const fault = (what: string, file: string): WatchfireError =>
  new WatchfireError("WF_DEPLOYED_DAMAGED", { what: `the ConfigMap ${what}`, place: { file } });
