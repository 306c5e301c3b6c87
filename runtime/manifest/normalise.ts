import { resolve } from "node:path";
import { parseDuration } from "@watchfire/sdk";
import { parseFieldPath, parseIndexPath } from "./field-path.ts";
import type { CachedRead, EnvVar, FunctionManifest, KeyRule, NamespaceScope, Permission, Trigger } from "./function.ts";
import { parseSize } from "./quantity.ts";
import { scheduleOf } from "./schedule.ts";
import type { CheckedManifest } from "./schema.ts";
import { fieldQuery, labelQuery } from "./selector.ts";
import { unbracketed } from "./surroundings-schema.ts";

type Checked = CheckedManifest["spec"];

/**
 * Converts a checked manifest to the form that other rooms use.
 * @param folder the absolute folder that `handler` is relative to
 */
export function normalise({ metadata, spec }: CheckedManifest, file: string, folder: string): FunctionManifest {
  const { retry, ...delivery } = spec.delivery;
  return {
    name: metadata.name,
    file,
    handler: resolve(folder, spec.handler),
    triggers: spec.triggers.flatMap(({ name, watch, key }) => (watch ? triggerOf(name, watch, key) : [])),
    schedules: spec.triggers.flatMap(({ name, schedule }, index) =>
      schedule ? scheduleOf(name, schedule, index) : [],
    ),
    reads: spec.reads.map(readOf),
    cacheBytes: checked(parseSize(spec.resources.cache)),
    stateBytes: checked(parseSize(spec.resources.state)),
    permissions: spec.permissions.map(permissionOf),
    delivery: {
      concurrency: delivery.concurrency,
      mode: delivery.mode,
      ...(delivery.shards > 1 && { shards: delivery.shards }),
      ...(delivery.shards > 1 && delivery.shardBy === "Namespace" && { shardBy: delivery.shardBy }),
      ...(delivery.resync !== undefined && { resyncMs: milliseconds(delivery.resync) }),
      timeoutMs: milliseconds(delivery.timeout),
      ...(delivery.debounce !== undefined && { debounceMs: milliseconds(delivery.debounce) }),
      ...(delivery.batch && {
        batch: { maxSize: delivery.batch.maxSize, maxWaitMs: milliseconds(delivery.batch.maxWait) },
      }),
      retry: {
        maxAttempts: retry.maxAttempts,
        initialDelayMs: milliseconds(retry.initialDelay),
        maxDelayMs: milliseconds(retry.maxDelay),
        factor: retry.factor,
      },
      onFailure: delivery.onFailure,
      deadLetters: {
        maxCount: delivery.deadLetters.maxCount,
        maxBytes: checked(parseSize(delivery.deadLetters.maxSize)),
      },
    },
    resources: {
      memoryBytes: checked(parseSize(spec.resources.memory)),
      cpuPerEventMs: milliseconds(spec.resources.cpuPerEvent),
    },
    isolation: spec.isolation,
    ...(spec.trustGroup !== undefined && { trustGroup: spec.trustGroup }),
    egress: spec.egress.map(({ host, ports, network }) => ({
      host: unbracketed(host.toLowerCase()).replace(/\.$/, ""),
      ports: [...new Set(ports)],
      network,
    })),
    env: spec.env.map(envOf),
    ...(spec.paused && { paused: true as const }),
    ...(spec.canary && { canary: spec.canary }),
  };
}

type CheckedTrigger = Checked["triggers"][number];
type CheckedWatch = NonNullable<CheckedTrigger["watch"]>;

function triggerOf(name: string | undefined, watch: CheckedWatch, key: CheckedTrigger["key"]): Trigger {
  return {
    ...(key && { key: keyOf(key) }),
    name: name ?? watch.kind.toLowerCase(),
    apiVersion: watch.apiVersion,
    kind: watch.kind,
    namespaces: scopeOf(watch.namespaceSelector),
    labelSelector: labelQuery(watch.labelSelector ?? {}),
    fieldSelector: checked(fieldQuery(watch.fieldSelector ?? "")),
    events: [...new Set(watch.events)],
    initialEvents: watch.initialEvents,
    changedFields: watch.changedFields.map((path) => checked(parseFieldPath(path))),
    matchConditions: watch.matchConditions,
    object: watch.object,
    lastBody: watch.lastBody,
  };
}

function keyOf({ owner, expression, all }: NonNullable<CheckedTrigger["key"]>): KeyRule {
  if (all) return { type: "all" };
  return owner ? { type: "owner", ...owner } : { type: "expression", expression: checked(expression) };
}

function readOf({
  indexes,
  namespaceSelector,
  labelSelector,
  fieldSelector,
  ...read
}: Checked["reads"][number]): CachedRead {
  return {
    ...read,
    namespaces: scopeOf(namespaceSelector),
    labelSelector: labelQuery(labelSelector ?? {}),
    fieldSelector: checked(fieldQuery(fieldSelector ?? "")),
    indexes: indexes.map(({ name, field }) => ({ name, field: checked(parseIndexPath(field)) })),
  };
}

function scopeOf(selector: CheckedWatch["namespaceSelector"]): NamespaceScope {
  if (selector?.matchNames) return { type: "names", names: [...new Set(selector.matchNames)].sort() };
  const labelSelector = labelQuery(selector ?? {});
  return labelSelector === "" ? { type: "all" } : { type: "labels", labelSelector };
}

function permissionOf({ resourceNames, namespaces, ...rule }: Checked["permissions"][number]): Permission {
  return { ...rule, ...(resourceNames && { resourceNames }), ...(namespaces && { namespaces }) };
}

function envOf({ name, value, valueFrom }: Checked["env"][number]): EnvVar {
  if (valueFrom?.secretKeyRef) return { name, secretKeyRef: valueFrom.secretKeyRef };
  if (valueFrom?.configMapKeyRef) return { name, configMapKeyRef: valueFrom.configMapKeyRef };
  return { name, value: value ?? "" };
}

const milliseconds = (text: string): number => checked(parseDuration(text));

/** Returns a value that the schema has validated, so its parser must accept it. */
function checked<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the schema let through what its parser refuses");
  return value;
}
