import { fieldTerms } from "../api/field-terms.ts";
import type { RequestInfo } from "../api/request-info.ts";
import { forbidden, type Named } from "../api/status.ts";
import { nameFaults } from "../kinds/names.ts";
import type { Attributes, Rbac } from "./rbac.ts";
import { mastersGroup, type User } from "./user.ts";

/** Decides what a user may do. Members of `system:masters` may do everything; RBAC decides for all others. */
export class Authorizer {
  readonly rbac: Rbac;

  constructor(rbac: Rbac) {
    this.rbac = rbac;
  }

  allows(user: User, wanted: Attributes): boolean {
    return user.groups.includes(mastersGroup) || this.rbac.allows(user, wanted);
  }

  /** Returns the reason why a request is refused, in the server's words; `undefined` if it is allowed. */
  refusal(user: User, info: RequestInfo, query: URLSearchParams): string | undefined {
    const wanted = attributesOf(info, query);
    return this.allows(user, wanted) ? undefined : refusal(user, wanted);
  }

  /**
   * Throws a 403 if the user may not create the named object. A PUT or an apply that creates needs the right to create as well, and
   * is checked with the name, which a POST is not (apiserver `endpoints/handlers/create.go`, `withAuthorization`).
   */
  admitNew(user: User, { group, plural }: Named, { namespace, name }: { namespace: string; name: string }): void {
    const wanted = { verb: "create", resource: { group, plural, subresource: "", namespace, name } };
    if (!this.allows(user, wanted)) throw forbidden({ group, plural }, name, refusal(user, wanted));
  }
}

/**
 * Converts a request to the attributes that authorization checks. A list or watch with the selector `metadata.name=x` is checked
 * as a request for that name.
 */
function attributesOf(info: RequestInfo, query: URLSearchParams): Attributes {
  if (!info.isResource) return { verb: info.verb, path: info.path };
  return {
    verb: info.verb,
    resource: {
      group: info.group,
      plural: info.resource,
      subresource: info.subresource,
      namespace: info.namespace,
      name: info.name || (isReadOfMany(info.verb) ? selectedName(query.get("fieldSelector") ?? "") : ""),
    },
  };
}

const isReadOfMany = (verb: string): boolean => verb === "list" || verb === "watch";

/**
 * Returns the value of the selector's first equation, in the alphabetical order of the terms. Returns "" if the selector has no
 * equation, or if the value cannot be a name.
 */
function selectedName(selector: string): string {
  const terms = fieldTerms(selector).filter((term) => typeof term !== "string");
  const name = terms.find(({ label, equal }) => label === "metadata.name" && equal)?.value ?? "";
  return nameFaults("segment", name).length === 0 ? name : "";
}

/** The message of a refusal: `User "x" cannot list resource "pods" in API group "" in the namespace "y"`. */
export function refusal(user: User, { verb, resource, path }: Attributes): string {
  const who = `User ${JSON.stringify(user.name)} cannot ${verb}`;
  if (!resource) return `${who} path ${JSON.stringify(path)}`;
  const full = resource.subresource === "" ? resource.plural : `${resource.plural}/${resource.subresource}`;
  const where =
    resource.namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(resource.namespace)}`;
  return `${who} resource ${JSON.stringify(full)} in API group ${JSON.stringify(resource.group)} ${where}`;
}
