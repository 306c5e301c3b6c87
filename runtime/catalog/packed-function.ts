import { gunzipSync, gzipSync } from "node:zlib";
import { WatchfireError } from "../base/errors.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { appliedMapLimit, scriptLimit } from "../bundle/limits.ts";
import type { AppliedObject } from "./api-objects.ts";
import type { ConfigMap } from "./config-map.ts";
import { type FunctionParts, hashOf, mapLimit, portableMap } from "./function-parts.ts";
import { configMapName, functionLabel, labelsOf } from "./names.ts";

/** Limit of one ConfigMap in the API server, all values together, in bytes (`core.MaxSecretSize`, which applies to both). */
const configMapLimit = 1024 * 1024;

const keys = { manifest: "function.yaml", script: "handler.js.gz", sourceMap: "handler.js.map.gz" } as const;

export interface PackedFunction {
  readonly name: string;
  /** Hash of the three parts; the ConfigMap's name contains its beginning. */
  readonly sha256: string;
  /** Size of all values in the ConfigMap. */
  readonly bytes: number;
  /** True if the map was left out; places in stacks are then those in the bundle. */
  readonly withoutSourceMap: boolean;
  readonly configMap: AppliedObject;
}

interface PackOptions {
  readonly account: string;
  readonly namespace: string;
  /** Absolute path that the source map's files are named relative to. */
  readonly root: string;
}

/**
 * Creates a function's ConfigMap. The same content gives the same name on any machine.
 * @param manifest the manifest's own text
 * @throws WatchfireError WF_DEPLOYED_TOO_LARGE
 */
export function packFunction(name: string, manifest: string, bundle: Bundle, options: PackOptions): PackedFunction {
  const { root } = options;
  const whole = { manifest, script: bundle.script, sourceMap: portableMap(bundle.sourceMap, root) };
  // Code that fits only without its map is deployed without it. A map that is too large to be applied to stacks would waste
  // space.
  const fits = sizeOf(whole) <= configMapLimit && whole.sourceMap.length <= appliedMapLimit;
  const parts = fits ? whole : { ...whole, sourceMap: "" };
  const bytes = sizeOf(parts);
  if (bytes > configMapLimit || Buffer.byteLength(parts.script) > scriptLimit) throw tooLarge(name, parts, bytes);
  const sha256 = hashOf(parts);
  const binaryData = {
    [keys.script]: gzipped(parts.script).toString("base64"),
    ...(parts.sourceMap && { [keys.sourceMap]: gzipped(parts.sourceMap).toString("base64") }),
  };
  const configMap = codeConfigMap(name, sha256, { data: { [keys.manifest]: manifest }, binaryData }, options);
  return { name, sha256, bytes, withoutSourceMap: parts.sourceMap === "", configMap };
}

/**
 * Returns the function of which a ConfigMap has the parts, to be written again.
 * @throws WatchfireError WF_DEPLOYED_DAMAGED
 */
export function repackFunction(
  name: string,
  found: ConfigMap,
  options: Pick<PackOptions, "account" | "namespace">,
): PackedFunction & { readonly parts: FunctionParts } {
  const { sha256, ...parts } = unpackFunction(found);
  const { data, binaryData } = found;
  return {
    name,
    sha256,
    bytes: sizeOf(parts),
    withoutSourceMap: parts.sourceMap === "",
    configMap: codeConfigMap(name, sha256, { data, binaryData }, options),
    parts,
  };
}

const codeConfigMap = (
  name: string,
  sha256: string,
  values: Pick<ConfigMap, "data" | "binaryData">,
  { account, namespace }: Pick<PackOptions, "account" | "namespace">,
): AppliedObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    name: configMapName(account, name, sha256),
    namespace,
    labels: { ...labelsOf(account, namespace), [functionLabel]: name },
  },
  immutable: true,
  ...values,
});

/**
 * Unpacks a ConfigMap, whoever wrote it. Parts that are missing, unreadable or too long are a fault.
 * @throws WatchfireError WF_DEPLOYED_DAMAGED
 */
export function unpackFunction({ metadata, data, binaryData }: ConfigMap): FunctionParts & { readonly sha256: string } {
  const unpacked = (key: string, limit: number): string => {
    try {
      return gunzipSync(Buffer.from(binaryData[key] ?? "", "base64"), { maxOutputLength: limit }).toString("utf8");
    } catch (cause) {
      const what = `${key} cannot be unpacked: ${(cause as Error).message}`;
      throw new WatchfireError("WF_DEPLOYED_DAMAGED", { what, place: { file: placeOf(metadata.name) }, cause });
    }
  };
  const parts = {
    manifest: data[keys.manifest] ?? "",
    script: unpacked(keys.script, scriptLimit),
    sourceMap: keys.sourceMap in binaryData ? unpacked(keys.sourceMap, mapLimit) : "",
  };
  return { ...parts, sha256: hashOf(parts) };
}

/**
 * Returns a function that unpacks only the source map of a ConfigMap that was unpacked before, so that only its gzipped form has
 * to be kept.
 */
export function sourceMapOf({ binaryData }: Pick<ConfigMap, "binaryData">): () => string {
  const packed = Buffer.from(binaryData[keys.sourceMap] ?? "", "base64");
  return () => (packed.length === 0 ? "" : gunzipSync(packed, { maxOutputLength: mapLimit }).toString("utf8"));
}

/** Returns the place of a ConfigMap in faults. */
export const placeOf = (configMap: string): string => `configmap/${configMap}`;

/** Compresses a text. The header names no operating system, so that all give the same bytes (RFC 1952, 2.3.1). */
function gzipped(text: string): Buffer {
  const bytes = gzipSync(text, { level: 9 });
  bytes[9] = 255;
  return bytes;
}

function sizeOf({ manifest, script, sourceMap }: FunctionParts): number {
  const packed = (text: string) => (text === "" ? 0 : gzipped(text).length);
  return Buffer.byteLength(manifest) + packed(script) + packed(sourceMap);
}

function tooLarge(name: string, { script }: FunctionParts, bytes: number): WatchfireError {
  const size = `${kib(bytes)} packed, ${kib(Buffer.byteLength(script))} of code`;
  return new WatchfireError("WF_DEPLOYED_TOO_LARGE", {
    what: `the function ${name} is too large (${size}); a ConfigMap takes ${kib(configMapLimit)}`,
  });
}

const kib = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`;
