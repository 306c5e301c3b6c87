import { at, type Fields, isFields, type KubeObject, put } from "../api/object.ts";
import { type FieldFault, fault } from "../api/status.ts";
import {
  applyDefaults,
  canonical,
  type FieldError,
  inOrder,
  type Json,
  type JsonObject,
  prune,
  statusCauses,
  validate,
  withoutEmpty,
} from "../schema/index.ts";
import { labelFaults, nameFaults, qualifiedNameFaults } from "./names.ts";
import type { ResourceType } from "./resource-type.ts";

/** Casts a stored object to the type that the schema functions take. */
export const asJson = (object: KubeObject): JsonObject => object as unknown as JsonObject;

/** Casts the result of a schema function back to an object of the API. */
export const asObject = (json: JsonObject): KubeObject => json as unknown as KubeObject;

/** Casts any value to JSON. */
export const json = (value: unknown): Json => value as Json;

const metadataFields = new Set([
  "name",
  "generateName",
  "namespace",
  "selfLink",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "labels",
  "annotations",
  "ownerReferences",
  "finalizers",
  "managedFields",
]);

/** Drops the fields that the kind's schema does not know; `unknown` lists their paths. */
export function pruned(type: ResourceType, object: KubeObject): { object: KubeObject; unknown: string[] } {
  const unknown: string[] = [];
  let metadata = object.metadata;
  for (const name of Object.keys(metadata)) {
    if (metadataFields.has(name)) continue;
    unknown.push(`metadata.${name}`);
    metadata = Object.fromEntries(Object.entries(metadata).filter(([key]) => key !== name));
  }
  const schema = type.schema();
  if (!schema) return { object: metadata === object.metadata ? object : { ...object, metadata }, unknown };
  const { apiVersion, kind, ...rest } = object;
  const outcome = prune(schema, asJson({ ...rest, apiVersion, kind, metadata } as KubeObject));
  return {
    object: { ...asObject(outcome.object), apiVersion, kind, metadata },
    unknown: [...unknown, ...outcome.unknown],
  };
}

/** Fills in the defaults of the kind's schema and of its traits. The result may be changed by the caller. */
export function defaulted(type: ResourceType, object: KubeObject, old: KubeObject | undefined): KubeObject {
  const schema = (type.storageSchema ?? type.schema)();
  const given = schema?.builtIn
    ? asObject(canonical(schema, asJson(object)))
    : { ...object, metadata: withoutEmpty(object.metadata) };
  for (const path of type.keptLists ?? []) {
    const list = at(object, path);
    if (Array.isArray(list) && list.length === 0) put(given, path, []);
  }
  const complete = schema ? asObject(applyDefaults(schema, asJson(given))) : given;
  const filled = type.custom ? asObject(inOrder(asJson(complete)) as JsonObject) : complete;
  if (!type.prepare) return filled;
  const own = structuredClone(filled);
  type.prepare(own, old);
  return own;
}

/** All faults of an object that is about to be stored. */
export function faultsOf(type: ResourceType, object: KubeObject, old: KubeObject | undefined): FieldFault[] {
  const schema = (type.storageSchema ?? type.schema)();
  const errors: FieldError[] = schema ? validate(schema, asJson(object), old && asJson(old)) : [];
  const own = [...metadataFaults(type, object, old), ...(type.check?.(object, old) ?? [])];
  const known = new Set(own.map(({ field, reason }) => `${field} ${reason}`));
  const fromSchema = statusCauses(errors).map(faultOfCause);
  return [...own, ...fromSchema.filter(({ field, reason }) => !known.has(`${field} ${reason}`))];
}

function faultOfCause(cause: JsonObject): FieldFault {
  return { reason: String(cause.reason), field: String(cause.field), message: String(cause.message) };
}

function metadataFaults(type: ResourceType, object: KubeObject, old: KubeObject | undefined): FieldFault[] {
  const { metadata } = object;
  const faults: FieldFault[] = [];
  if (!metadata.name) faults.push(fault.required("metadata.name", "name or generateName is required"));
  else
    for (const text of nameFaults(type.nameRule ?? "subdomain", metadata.name))
      faults.push(fault.invalid("metadata.name", metadata.name, text));
  // A generated name continues after a dash.
  const prefix = metadata.generateName?.replace(/-$/, "a");
  for (const text of prefix ? nameFaults(type.nameRule ?? "subdomain", prefix) : [])
    faults.push(fault.invalid("metadata.generateName", metadata.generateName, text));
  faults.push(...labelFaults(metadata.labels, "metadata.labels"));
  for (const key of Object.keys(metadata.annotations ?? {}))
    for (const text of qualifiedNameFaults(key.toLowerCase()))
      faults.push(fault.invalid("metadata.annotations", key, text));
  faults.push(...annotationSizeFaults(metadata.annotations ?? {}));
  metadata.finalizers?.forEach((finalizer, index) => {
    for (const text of qualifiedNameFaults(finalizer))
      faults.push(fault.invalid("metadata.finalizers", finalizer, text));
    if (
      !finalizer.includes("/") &&
      !standardFinalizers.has(finalizer) &&
      !looseFinalizerGroups.has(type.group) &&
      !type.custom
    )
      faults.push(
        fault.invalid(
          `metadata.finalizers[${index}]`,
          finalizer,
          "name is neither a standard finalizer name nor is it fully qualified",
        ),
      );
  });
  faults.push(...ownerFaults(metadata.ownerReferences ?? []));
  if (old) faults.push(...changeFaults(object, old));
  return faults;
}

/** Finalizers of built-in kinds that need no domain. */
const standardFinalizers = new Set(["kubernetes", "orphan", "foregroundDeletion"]);

/** Groups of built-in kinds that take any finalizer, as custom resources do. */
const looseFinalizerGroups = new Set([
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "admissionregistration.k8s.io",
]);

/** Bytes that all annotations of an object may have, keys and values (`TotalAnnotationSizeLimitB`). */
const annotationLimit = 256 * 1024;

function annotationSizeFaults(annotations: Readonly<Record<string, string>>): FieldFault[] {
  let size = 0;
  for (const [key, value] of Object.entries(annotations)) size += Buffer.byteLength(key) + Buffer.byteLength(value);
  return size > annotationLimit ? [fault.tooLong("metadata.annotations", annotationLimit)] : [];
}

function ownerFaults(owners: readonly unknown[]): FieldFault[] {
  const faults: FieldFault[] = [];
  let controllers = 0;
  owners.forEach((owner, index) => {
    if (!isFields(owner)) return;
    const path = `metadata.ownerReferences[${index}]`;
    for (const name of ["apiVersion", "kind", "name", "uid"])
      if (!owner[name]) faults.push(fault.invalid(`${path}.${name}`, owner[name] ?? "", "must not be empty"));
    const { apiVersion, kind } = owner;
    if (String(apiVersion ?? "").split("/").length > 2)
      faults.push(fault.invalid("metadata.ownerReferences.apiVersion", apiVersion, "version must not be empty"));
    if (apiVersion === "v1" && kind === "Event")
      faults.push(
        fault.invalid("metadata.ownerReferences", owner, "/v1, Kind=Event is disallowed from being an owner"),
      );
    if (owner.controller === true) controllers++;
  });
  if (controllers > 1)
    faults.push(
      fault.invalid("metadata.ownerReferences", owners, "Only one reference can have Controller set to true"),
    );
  return faults;
}

/** Faults of an update that changes immutable metadata. */
function changeFaults(object: KubeObject, old: KubeObject): FieldFault[] {
  const faults: FieldFault[] = [];
  if (old.metadata.deletionTimestamp) {
    const before = new Set(old.metadata.finalizers);
    const added = (object.metadata.finalizers ?? []).filter((one) => !before.has(one));
    if (added.length > 0)
      faults.push(
        fault.forbidden(
          "metadata.finalizers",
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((one) => JSON.stringify(one)).join(", ")}}`,
        ),
      );
  }
  return faults;
}

/**
 * Checks that labels and annotations are maps of strings; other values cannot be decoded at all. A null is an empty string.
 * Returns the fault, if there is one.
 */
export function unreadableMetadata(metadata: Fields): string | undefined {
  for (const map of ["labels", "annotations"]) {
    const value = metadata[map];
    if (value === undefined || value === null) continue;
    if (!isFields(value)) return `metadata.${map} of type map[string]string`;
    for (const one of Object.values(value))
      if (typeof one !== "string" && one !== null) return `ObjectMeta.metadata.${map} of type string`;
  }
  return undefined;
}
