import { apiVersionOf } from "../../kube/discovery.ts";
import type { Resource } from "../../kube/resource.ts";
import type { ObjectMembers } from "../scan/change.ts";
import type { ObjectScanner } from "../scan/object-scan.ts";

/** Specification of what one source lists and watches. */
export interface SourceSpec {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent: the whole cluster. */
  readonly namespace?: string | undefined;
  /** In the API's query form; "" selects all. */
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Default `full`. */
  readonly representation?: Representation;
}

/** `metadata`: only the metadata of objects is transferred, which is a third of a Pod. */
export type Representation = "full" | "metadata";

/**
 * Returns the key of a spec. Specs with equal keys share one list and watch; the order of a selector's requirements does not
 * matter.
 */
export function sourceKey(spec: SourceSpec): string {
  const { apiVersion, kind, namespace = "", representation = "full" } = spec;
  const labels = canonicalSelector(spec.labelSelector ?? "");
  const fields = canonicalSelector(spec.fieldSelector ?? "");
  return JSON.stringify([apiVersion, kind, namespace, labels, fields, representation]);
}

/** Returns the selector with its requirements, and the values of `in` and `notin`, sorted and without needless spaces. */
function canonicalSelector(selector: string): string {
  const requirements = splitOutside(selector);
  return [...new Set(requirements.map(canonicalRequirement))].sort().join(",");
}

/** Splits at commas that are outside parentheses. */
function splitOutside(selector: string): string[] {
  const parts = selector.match(/(?:[^,(]|\([^)]*\))+/g) ?? [];
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}

function canonicalRequirement(requirement: string): string {
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(requirement);
  if (!set) return requirement.replace(/\s*(==|!=|=)\s*/, (_, operator) => (operator === "==" ? "=" : operator));
  const values = (set[3] ?? "").split(",").map((value) => value.trim());
  return `${set[1]} ${set[2]} (${[...new Set(values)].sort().join(",")})`;
}

/** Returns the selectors' query parameters for every list and watch of the source. */
export function selectorQuery(spec: SourceSpec): Record<string, string | undefined> {
  return { labelSelector: spec.labelSelector || undefined, fieldSelector: spec.fieldSelector || undefined };
}

/**
 * Returns the Accept header of lists and watches, unless it is plain JSON. Servers that do not support the metadata form send the
 * whole object.
 */
export function acceptHeader(spec: SourceSpec, form: "list" | "watch"): Record<string, string> {
  if (spec.representation !== "metadata") return {};
  const kind = form === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return { accept: `application/json;as=${kind};g=meta.k8s.io;v=v1,application/json` };
}

/** The apiVersion and kind shared by all objects of a source, and the form in which objects are delivered. */
export class ObjectIdentity {
  readonly apiVersion: string;
  readonly kind: string;
  /** `"apiVersion":"v1","kind":"Pod",`, inserted into objects that lack it. */
  readonly bytes: Buffer;
  /**
   * True if the kind may come from a CustomResourceDefinition, which may name any kind for its lists. Discovery does not report
   * that kind. The group of a definition has a dot, as few built-in groups have.
   */
  private readonly namesItsLists: boolean;
  private readonly representation: Representation;

  constructor(resource: Resource, representation: Representation = "full") {
    this.representation = representation;
    this.namesItsLists = resource.group.includes(".");
    this.apiVersion = apiVersionOf(resource);
    this.kind = resource.kind;
    const text = JSON.stringify({ apiVersion: this.apiVersion, kind: this.kind });
    this.bytes = Buffer.from(`${text.slice(1, -1)},`);
  }

  /** `as-is`; `insert` if the object lacks apiVersion and kind or is in its metadata form; `mismatch` for another kind. */
  private judge(apiVersion: string, kind: string): "as-is" | "insert" | "mismatch" {
    if (kind === this.kind && apiVersion === this.apiVersion) return "as-is";
    if (kind === "" && (apiVersion === "" || apiVersion === this.apiVersion)) return "insert";
    if (kind === "PartialObjectMetadata" && apiVersion.startsWith("meta.k8s.io/")) return "insert";
    return apiVersion === "" && kind === this.kind ? "insert" : "mismatch";
  }

  /**
   * Returns the text to deliver for a scanned object; `undefined` for one of another kind. For a metadata source it is the
   * metadata alone, whatever form the server sends.
   */
  bodyOf(object: ObjectScanner, bytes: Buffer, start: number, end: number): Buffer | undefined {
    const form = this.judge(object.apiVersion, object.kind);
    if (form === "mismatch") return undefined;
    if (this.representation === "metadata") return object.metadataBody(bytes, this.bytes);
    return object.body(bytes, start, end, form === "insert" ? this.bytes : undefined);
  }

  /** Returns the offsets of the members in the text of `bodyOf`; `undefined` if that is not the received text. */
  membersOf(object: ObjectScanner, start: number): ObjectMembers | undefined {
    const isReceived = this.representation === "full" && this.judge(object.apiVersion, object.kind) === "as-is";
    return isReceived ? object.members(start) : undefined;
  }

  /**
   * Whether a list with this apiVersion and kind contains other objects, in which case a missing object does not count as
   * deleted.
   */
  refusesList(apiVersion: string, kind: string): boolean {
    if (kind === "" || (kind === "List" && apiVersion === "v1")) return false;
    if (kind === "PartialObjectMetadataList" && apiVersion.startsWith("meta.k8s.io/")) return false;
    if (apiVersion !== "" && apiVersion !== this.apiVersion) return true;
    return this.namesItsLists ? kind === this.kind : kind !== `${this.kind}List`;
  }

  /** Like `refusesList`, for a bookmark. Its apiVersion may be the stored version, so only the kind is checked. */
  refusesBookmark(kind: string): boolean {
    return kind !== "" && kind !== this.kind && kind !== "PartialObjectMetadata";
  }
}
