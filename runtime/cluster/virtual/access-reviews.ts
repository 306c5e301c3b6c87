import { at, type Fields, isFields, type KubeObject } from "../api/object.ts";
import { badRequest, fault, invalid, methodNotAllowed } from "../api/status.ts";
import type { Attributes, PolicyRule } from "../auth/rbac.ts";
import { mastersGroup, type User } from "../auth/user.ts";
import { objectOf } from "../rest/body.ts";
import type { Call } from "../rest/call.ts";
import type { Subresource } from "../rest/resource-handler.ts";
import type { Services } from "./services.ts";

const group = "authorization.k8s.io";

/** The reviews of authorization.k8s.io, which answer whether a user may do something. */
export function accessReviews({ authorizer }: Services): [string, Subresource][] {
  const decide = (user: User, spec: unknown) => {
    const allowed = authorizer.allows(user, attributesIn(spec));
    return allowed ? { allowed } : { allowed };
  };
  return [
    [
      `selfsubjectaccessreviews.${group}`,
      review((call, object) => {
        checkAttributes(object);
        return decide(call.user, object.spec);
      }),
    ],
    [
      `subjectaccessreviews.${group}`,
      review((_call, object) => {
        checkSubject(object);
        return decide(subject(object.spec), object.spec);
      }),
    ],
    [
      `localsubjectaccessreviews.${group}`,
      review((call, object) => {
        checkSubject(object);
        const namespace = at(object, "spec.resourceAttributes.namespace");
        if (namespace !== call.namespace)
          throw badRequest(`spec.resourceAttributes.namespace must match namespace: ${call.namespace}`);
        return decide(subject(object.spec), object.spec);
      }),
    ],
    [
      `selfsubjectrulesreviews.${group}`,
      review((call, object) =>
        rulesOf(call.user, [...authorizer.rbac.rules(call.user, String(at(object, "spec.namespace") ?? ""))]),
      ),
    ],
  ];
}

/** Creates a handler that answers a review with its status. */
export function review(statusOf: (call: Call, object: KubeObject) => Fields): Subresource {
  return async (call, verb, body) => {
    if (verb !== "create") throw methodNotAllowed();
    const object = objectOf(await body(), call.type);
    const status = statusOf(call, object);
    const { creationTimestamp: _, ...metadata } = object.metadata;
    return { code: 201, value: { ...object, metadata, status } };
  };
}

function checkAttributes(object: KubeObject): void {
  const resource = at(object, "spec.resourceAttributes");
  const path = at(object, "spec.nonResourceAttributes");
  if (isFields(resource) === isFields(path))
    throw invalid({ group, kind: object.kind }, "", [
      fault.invalid(
        "spec.resourceAttributes",
        resource ?? null,
        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
      ),
    ]);
}

function checkSubject(object: KubeObject): void {
  checkAttributes(object);
  const groups = at(object, "spec.groups");
  if (!at(object, "spec.user") && !(Array.isArray(groups) && groups.length > 0))
    throw invalid({ group, kind: object.kind }, "", [
      fault.invalid("spec.user", "", "at least one of user or group must be specified"),
    ]);
}

function subject(spec: unknown): User {
  const groups = at(spec, "groups");
  return { name: String(at(spec, "user") ?? ""), groups: Array.isArray(groups) ? groups.map(String) : [], extra: {} };
}

function attributesIn(spec: unknown): Attributes {
  const path = at(spec, "nonResourceAttributes");
  if (isFields(path)) return { verb: String(path.verb ?? ""), path: String(path.path ?? "") };
  const text = (name: string) => String(at(spec, `resourceAttributes.${name}`) ?? "");
  return {
    verb: text("verb"),
    resource: {
      group: text("group"),
      plural: text("resource"),
      subresource: text("subresource"),
      namespace: text("namespace"),
      name: text("name"),
    },
  };
}

function rulesOf(user: User, rules: PolicyRule[]): Fields {
  const all: PolicyRule[] = user.groups.includes(mastersGroup)
    ? [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }, { verbs: ["*"], nonResourceURLs: ["*"] }, ...rules]
    : rules;
  return {
    incomplete: false,
    resourceRules: all.filter(({ resources }) => resources?.length),
    nonResourceRules: all.filter(({ nonResourceURLs }) => nonResourceURLs?.length),
  };
}
