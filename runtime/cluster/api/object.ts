/** A reference from a dependent to its owner, as in metav1.OwnerReference. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** One manager's share of an object, as in metav1.ManagedFieldsEntry. */
interface ManagedFields {
  manager?: string;
  operation?: "Apply" | "Update";
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: unknown;
  subresource?: string;
}

/** metav1.ObjectMeta, as far as the server itself reads it. */
export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFields[];
  selfLink?: string;
}

/** Any object of the API. Stored objects are never changed: a write stores a new one. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** A JSON object of unknown shape. */
export type Fields = Record<string, unknown>;

/** True of a JSON object: neither null nor an array. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the value if it is an object, otherwise an empty object. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

/** Returns the value at a dotted path such as `spec.nodeName`; `undefined` if any step is missing. */
export function at(object: unknown, path: string): unknown {
  let value = object;
  for (const step of path.split(".")) {
    if (step === "") continue;
    if (!isFields(value)) return undefined;
    value = value[step];
  }
  return value;
}

/** Sets the value at a dotted path and creates the missing objects along it; `undefined` removes the value. */
export function put(object: Fields, path: string, value: unknown): void {
  const steps = path.split(".").filter((step) => step !== "");
  const last = steps.pop();
  if (last === undefined) return;
  let place = object;
  for (const step of steps) {
    const next = place[step];
    if (isFields(next)) place = next;
    else {
      const made: Fields = {};
      place[step] = made;
      place = made;
    }
  }
  if (value === undefined) delete place[last];
  else place[last] = value;
}

/** Structural equality of two JSON values; a field that is undefined counts as absent. */
export function equal(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => equal(item, right[index]));
  }
  if (!isFields(left) || !isFields(right)) return false;
  for (const key in left) if (!equal(left[key], right[key])) return false;
  for (const key in right) if (right[key] !== undefined && left[key] === undefined) return false;
  return true;
}

/** metav1.Time's wire form: RFC 3339 in whole seconds, UTC. */
export function timestamp(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}

/** The group and version of an apiVersion such as `apps/v1`; the core group is "". */
export function groupVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return slash < 0
    ? { group: "", version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** The apiVersion of a group and version. */
export function apiVersionOf(group: string, version: string): string {
  return group === "" ? version : `${group}/${version}`;
}
