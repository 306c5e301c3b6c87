import { fieldTerms } from "../api/field-terms.ts";
import type { RequestInfo } from "../api/request-info.ts";
import { nameFaults } from "../kinds/names.ts";
import type { Attributes, Rbac } from "./rbac.ts";
import { mastersGroup, type User } from "./user.ts";

/** Decides who may do what: the masters everything, others by RBAC. */
export class Authorizer {
  readonly rbac: Rbac;

  constructor(rbac: Rbac) {
    this.rbac = rbac;
  }

  allows(user: User, wanted: Attributes): boolean {
    return user.groups.includes(mastersGroup) || this.rbac.allows(user, wanted);
  }

  /** Why a request is refused, in the server's words; undefined where it is allowed. */
  refusal(user: User, info: RequestInfo, query: URLSearchParams): string | undefined {
    const wanted = attributesOf(info, query);
    return this.allows(user, wanted) ? undefined : refusal(user, wanted);
  }
}

/** A request as authorization sees it. A list or a watch of `metadata.name=x` is about that name. */
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

/** Of several equations the first in the order of their texts; "" where there is none, or its value can be no name. */
function selectedName(selector: string): string {
  const terms = fieldTerms(selector).filter((term) => typeof term !== "string");
  const name = terms.find(({ label, equal }) => label === "metadata.name" && equal)?.value ?? "";
  return nameFaults("segment", name).length === 0 ? name : "";
}

/** `User "x" cannot list resource "pods" in API group "" in the namespace "y"`. */
export function refusal(user: User, { verb, resource, path }: Attributes): string {
  const who = `User ${JSON.stringify(user.name)} cannot ${verb}`;
  if (!resource) return `${who} path ${JSON.stringify(path)}`;
  const full = resource.subresource === "" ? resource.plural : `${resource.plural}/${resource.subresource}`;
  const where =
    resource.namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(resource.namespace)}`;
  return `${who} resource ${JSON.stringify(full)} in API group ${JSON.stringify(resource.group)} ${where}`;
}
