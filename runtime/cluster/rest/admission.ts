import type { KubeObject } from "../api/object.ts";
import { badRequest, type FieldFault, fault, forbidden, invalid, notFound } from "../api/status.ts";
import { present, servedVersion } from "../kinds/resource-type.ts";
import { asJson, faultsOf, pruned, unreadableMetadata } from "../kinds/shape.ts";
import { typeMismatch } from "../kinds/type-mismatch.ts";
import { trackUpdate } from "../schema/index.ts";
import { handled } from "./body.ts";
import type { Call } from "./call.ts";

/** Drops unknown fields, and reports them as the request's `fieldValidation` asks. Throws a 400 under Strict. */
export function admitFields(call: Call, object: KubeObject, duplicates: readonly string[] = []): KubeObject {
  const wrong = unreadableMetadata(object.metadata as Record<string, unknown>);
  if (wrong) throw badRequest(handled(call.type, `json: cannot unmarshal into Go struct field ${wrong}`));
  const schema = call.type.custom ? undefined : call.type.schema();
  const mismatch = schema && typeMismatch(schema, object, call.type.kind);
  if (mismatch) throw badRequest(handled(call.type, mismatch));
  const outcome = pruned(call.type, object);
  const faults = [
    ...duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`),
    ...outcome.unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
  ];
  if (faults.length === 0 || call.fieldValidation === "Ignore") return outcome.object;
  if (call.fieldValidation === "Strict")
    throw badRequest(handled(call.type, `strict decoding error: ${faults.join(", ")}`));
  call.warnings.push(...faults);
  return outcome.object;
}

/** Checks that a new object's namespace exists and is not in deletion. Throws 404 or 403. */
export function admitNamespace(call: Call, name: string): void {
  if (!call.type.namespaced) return;
  const namespaces = { group: "", plural: "namespaces" };
  const namespace = call.backend.store.get("namespaces", call.namespace)?.object;
  if (!namespace) throw notFound(namespaces, call.namespace);
  if (!namespace.metadata.deletionTimestamp) return;
  throw forbidden(
    call.type,
    name,
    `unable to create new content in namespace ${call.namespace} because it is being terminated`,
    [
      {
        reason: "NamespaceTerminating",
        message: `namespace ${call.namespace} is being terminated`,
        field: "metadata.namespace",
      },
    ],
  );
}

/** Refuses to create a custom resource whose definition is being deleted. Throws a 403. */
export function admitDefinition(call: Call, name: string): void {
  const definition = call.type.custom?.metadata.name;
  if (definition === undefined) return;
  const stored = call.backend.store.get("customresourcedefinitions.apiextensions.k8s.io", definition)?.object;
  if (stored?.metadata.deletionTimestamp)
    throw forbidden(call.type, name, "create not allowed while custom resource definition is terminating");
}

/** Validates an object before it is stored. Throws a 422. */
export function admitObject(call: Call, object: KubeObject, old: KubeObject | undefined): void {
  const faults = faultsOf(call.type, object, old);
  if (faults.length > 0) throw invalid(call.type, object.metadata.name ?? "", faults);
}

/** Checks that the name and namespace in a body are those of the URL. Throws a 400. */
export function admitIdentity(call: Call, object: KubeObject): KubeObject {
  const { metadata } = object;
  if (call.type.namespaced && metadata.namespace && metadata.namespace !== call.namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  if (call.name !== "" && metadata.name !== undefined && metadata.name !== "" && metadata.name !== call.name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${call.name})`);
  const own = { ...metadata };
  if (call.type.namespaced) own.namespace = call.namespace;
  else delete own.namespace;
  return { ...object, metadata: own };
}

/** Returns the object with its managedFields updated, after a write other than an apply. */
export function withManagedFields(call: Call, object: KubeObject, old: KubeObject | undefined): KubeObject {
  const view = (one: KubeObject) => asJson(present(call.type, one));
  const managedFields = trackUpdate({
    before: old && view(old),
    after: view(object),
    manager: call.manager,
    operation: "Update",
    apiVersion: servedVersion(call.type),
    ...(call.subresource === "" ? {} : { subresource: call.subresource }),
    schema: call.type.schema(),
    resetFields: resetFields(call),
    now: call.backend.clock.now(),
  });
  const metadata = { ...object.metadata };
  if (managedFields.length > 0) metadata.managedFields = managedFields;
  else delete metadata.managedFields;
  return { ...object, metadata };
}

/** The fields that a client cannot set at this endpoint. A write through it does not acquire them. */
export function resetFields(call: Call): string[][] {
  if (!call.type.status) return [];
  if (call.subresource === "status") return call.type.custom ? [["spec"], ["metadata"]] : [["spec"]];
  return [["status"]];
}

/** Throws a 422 if the kind requires a resourceVersion and the object lacks it. */
export function admitResourceVersion(call: Call, object: KubeObject): void {
  if (object.metadata.resourceVersion || !(call.type.needsResourceVersion || call.type.custom)) return;
  const faults: FieldFault[] = [
    {
      ...fault.invalid("metadata.resourceVersion", 0, "must be specified for an update"),
      message: "Invalid value: 0: must be specified for an update",
    },
  ];
  throw invalid({ group: call.type.group, kind: call.type.plural }, object.metadata.name ?? call.name, faults);
}
