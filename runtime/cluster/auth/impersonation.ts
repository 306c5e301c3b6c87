import type { IncomingHttpHeaders } from "node:http";
import { authenticatedGroup, type User } from "./user.ts";

const extraPrefix = "impersonate-extra-";

/** The user that the Impersonate headers name; `undefined` without such headers. */
export function impersonated(headers: IncomingHttpHeaders): User | undefined {
  const name = headers["impersonate-user"];
  if (typeof name !== "string" || name === "") return undefined;
  const groups = listed(headers["impersonate-group"]);
  const extra: Record<string, string[]> = {};
  for (const [header, value] of Object.entries(headers))
    if (header.startsWith(extraPrefix)) extra[decodeURIComponent(header.slice(extraPrefix.length))] = listed(value);
  const uid = headers["impersonate-uid"];
  return {
    name,
    ...(typeof uid === "string" ? { uid } : {}),
    groups: [...(groups.length > 0 ? groups : accountGroups(name)), authenticatedGroup].filter(
      (group, index, all) => all.indexOf(group) === index,
    ),
    extra,
  };
}

/** The groups that a ServiceAccount belongs to. */
function accountGroups(name: string): string[] {
  const [, , namespace, account] = name.startsWith("system:serviceaccount:") ? name.split(":") : [];
  return namespace && account ? ["system:serviceaccounts", `system:serviceaccounts:${namespace}`] : [];
}

/** The values of a header. Node joins repeated headers by ", ". */
function listed(value: string | string[] | undefined): string[] {
  if (value === undefined) return [];
  return (Array.isArray(value) ? value : value.split(",")).map((one) => one.trim()).filter((one) => one !== "");
}
