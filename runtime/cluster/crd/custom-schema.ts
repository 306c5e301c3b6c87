import { at, isFields } from "../api/object.ts";
import type { ResourceType } from "../kinds/resource-type.ts";

/** `schema.openAPIV3Schema` of the CRD version that a custom resource is served by. */
export function customSchema(type: ResourceType): unknown {
  const versions = at(type.custom, "spec.versions");
  if (!Array.isArray(versions)) return undefined;
  const version = versions.find((one) => isFields(one) && one.name === type.version);
  return at(version, "schema.openAPIV3Schema");
}
