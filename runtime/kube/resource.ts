// Discovery's description of a kind.

/** A served resource. */
export interface Resource {
  /** "" for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural in the path, such as `configmaps`. */
  readonly plural: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** Names of subresources, such as `status` and `scale`. */
  readonly subresources: readonly string[];
}

/**
 * Returns the API path of a collection, an object or a subresource. The object's name is encoded as one segment; the caller must
 * have checked that it is neither `.` nor `..`. A namespace must be a DNS label.
 */
export function resourcePath(
  resource: Pick<Resource, "group" | "version" | "plural" | "namespaced">,
  namespace?: string,
  name?: string,
  subresource?: string,
): string {
  const base = resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  const segment = name === undefined ? undefined : encodeURIComponent(name);
  return [`${base}${scope}`, resource.plural, segment, subresource].filter((part) => part !== undefined).join("/");
}
