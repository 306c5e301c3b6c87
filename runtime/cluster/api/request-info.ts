/** A parsed request path: the verb, resource and names it addresses. The same as apiserver's RequestInfo. */
export interface RequestInfo {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; lower-case method otherwise. */
  verb: string;
  /** True of paths below `/api/<version>` and `/apis/<group>/<version>` that name a resource. */
  isResource: boolean;
  path: string;
  group: string;
  version: string;
  namespace: string;
  resource: string;
  subresource: string;
  name: string;
}

const verbs: Record<string, string> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
  GET: "get",
  HEAD: "get",
};

/** The subresources of a namespace itself; anything else below a namespace is a resource in it. */
const namespaceSubresources = new Set(["status", "finalize"]);

/** Reads a request's path. A path with a part that is empty or cannot be decoded is not a resource. */
export function requestInfo(method: string, pathname: string, query: URLSearchParams): RequestInfo {
  const info: RequestInfo = {
    verb: method.toLowerCase(),
    isResource: false,
    path: pathname,
    group: "",
    version: "",
    namespace: "",
    resource: "",
    subresource: "",
    name: "",
  };
  const parts = decoded(pathname);
  if (!parts) return info;
  const prefix = parts.shift();
  if (prefix === "apis") info.group = parts.shift() ?? "";
  else if (prefix !== "api") return info;
  info.version = parts.shift() ?? "";
  if (parts.length === 0) return info;
  info.isResource = true;
  info.verb = verbs[method] ?? info.verb;
  let watch = false;
  if (parts[0] === "watch") {
    watch = true;
    parts.shift();
  }
  if (parts[0] === "namespaces" && parts.length > 2 && !namespaceSubresources.has(parts[2] ?? "")) {
    info.namespace = parts[1] ?? "";
    parts.splice(0, 2);
  }
  [info.resource = "", info.name = "", info.subresource = ""] = parts;
  if (parts.length > 3) info.subresource = parts.slice(2).join("/");
  if (info.resource === "namespaces" && info.group === "") info.namespace = info.name;
  if (info.name === "" && info.verb === "get") info.verb = "list";
  if (info.name === "" && info.verb === "delete") info.verb = "deletecollection";
  const asked = !["0", "false"].includes(query.get("watch")?.toLowerCase() ?? "0");
  if (watch || (info.verb === "list" && asked)) info.verb = "watch";
  return info;
}

function decoded(pathname: string): string[] | undefined {
  try {
    return pathname
      .split("/")
      .filter((part) => part !== "")
      .map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
