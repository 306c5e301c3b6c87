import { z } from "zod";
import { dnsLabel, dnsSubdomain, objectName } from "../kube/names.ts";

/** Verbs of the handler's client; watching is done by triggers. */
const verbs = ["get", "list", "create", "update", "patch", "delete", "*"] as const;

/** A plural, `plural/subresource`, `*`, or `*` with a subresource, as in RBAC. */
const resource = /^(?:\*|[a-z0-9][a-z0-9.-]*)(?:\/(?:\*|[a-z][a-z0-9-]*))?$/;

const list = <Item extends z.ZodType>(item: Item) =>
  z.array(item).min(1, { error: "expected at least one; an empty list grants nothing" }).max(100);

/** RBAC's PolicyRule and the namespaces in which it holds. */
export const permissionSchema = z.strictObject({
  apiGroups: list(
    z
      .string()
      .refine(
        (group) =>
          group === "" || group === "*" || (dnsSubdomain.test(group) && !/^(?:v\d[a-z0-9]*|core)$/.test(group)),
        {
          error: 'expected an API group without its version, such as "" (core) or apps',
        },
      ),
  ).describe('API groups without version; "" is the core group, "*" all.'),
  resources: list(
    z.string().regex(resource, { error: "expected a plural in lower case, such as configmaps or deployments/scale" }),
  ).describe('Plurals, such as configmaps or deployments/scale; "*" is all.'),
  verbs: list(z.enum(verbs)).describe("The allowed verbs."),
  resourceNames: list(z.string().regex(objectName, { error: "expected an object's name" }))
    .optional()
    .describe(
      "Only objects with these names. Such a rule allows a list only with fieldSelector metadata.name=NAME, and does not allow create.",
    ),
  namespaces: list(z.string().regex(dnsLabel, { error: "expected a namespace's name" }))
    .optional()
    .describe("Only in these namespaces. Default: everywhere, including cluster-scoped objects."),
});
