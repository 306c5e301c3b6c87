import { z } from "zod";
import * as names from "../kube/names.ts";

const objectName = z.string().regex(names.objectName, { error: "is no object's name" });
const namespaceName = z.string().regex(names.dnsLabel, { error: "is no namespace's name" });
const apiVersion = z.string().max(317).regex(names.apiVersion, { error: "is no API version such as v1 or apps/v1" });
const kind = z.string().regex(names.kind, { error: "is no kind such as ConfigMap" });

export const refSchema = z.strictObject({
  apiVersion,
  kind,
  name: objectName,
  namespace: namespaceName.optional(),
});

/** What names a kind's collection. */
export const collectionShape = { apiVersion, kind, namespace: namespaceName.optional() };

/**
 * An object to be written: only what makes its path is looked at, the rest is the API server's to judge. The result lacks the
 * rest: to visit tens of thousands of fields takes longer than the parent should stand still.
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

/** Names one object, or a collection where `name` is absent. */
export interface Reference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name?: string;
  readonly namespace?: string;
}

/** The reference that an object's own fields make. */
export function referenceOf({ apiVersion, kind, metadata }: z.infer<typeof objectSchema>): Reference {
  const { name, namespace } = metadata;
  return { apiVersion, kind, ...(name !== undefined && { name }), ...(namespace !== undefined && { namespace }) };
}
