import { z } from "zod";
import * as names from "../kube/names.ts";

const objectName = z.string().regex(names.objectName, { error: "is not an object's name" });
const namespaceName = z.string().regex(names.dnsLabel, { error: "is not a namespace's name" });
const apiVersion = z
  .string()
  .max(317)
  .regex(names.apiVersion, { error: "is not an API version such as v1 or apps/v1" });
const kind = z.string().regex(names.kind, { error: "is not a kind such as ConfigMap" });

export const refSchema = z.strictObject({
  apiVersion,
  kind,
  name: objectName,
  namespace: namespaceName.optional(),
});

/** Fields that identify the collection of a kind. */
export const collectionShape = { apiVersion, kind, namespace: namespaceName.optional() };

/**
 * Schema of an object to be written. Only the fields of its path are checked; the API server validates the rest. The result lacks
 * the other fields, because visiting tens of thousands of them would block the parent for too long.
 */
export const objectSchema = z.object({
  apiVersion,
  kind,
  metadata: z.object({
    name: objectName.optional(),
    generateName: z.string().max(253).optional(),
    namespace: namespaceName.optional(),
    uid: z.string().max(128).optional(),
  }),
});

/** Identifies one object, or a collection if `name` is absent. */
export interface Reference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name?: string;
  readonly namespace?: string;
}

/** Returns the reference to an object. */
export function referenceOf({ apiVersion, kind, metadata }: z.infer<typeof objectSchema>): Reference {
  const { name, namespace } = metadata;
  return { apiVersion, kind, ...(name !== undefined && { name }), ...(namespace !== undefined && { namespace }) };
}
