import { apiVersionOf } from "../../kube/discovery.ts";
import type { Resource } from "../../kube/resource.ts";
import type { ObjectMembers } from "../scan/change.ts";
import type { ObjectScanner } from "../scan/object-scan.ts";

/** What one source lists and watches. */
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

/** `metadata`: objects come as their metadata alone, which is a third of a Pod. */
export type Representation = "full" | "metadata";

/** Two specs with one key are one list and watch: requirements of a selector may stand in any order. */
export function sourceKey(spec: SourceSpec): string {
  const { apiVersion, kind, namespace = "", representation = "full" } = spec;
  const labels = canonicalSelector(spec.labelSelector ?? "");
  const fields = canonicalSelector(spec.fieldSelector ?? "");
  return JSON.stringify([apiVersion, kind, namespace, labels, fields, representation]);
}

/** The selector with its requirements, and the values of `in` and `notin`, in one order and without needless spaces. */
function canonicalSelector(selector: string): string {
  const requirements = splitOutside(selector);
  return [...new Set(requirements.map(canonicalRequirement))].sort().join(",");
}

/** Splits at commas that no parenthesis encloses. */
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

/** The selectors' part of the query of every list and watch of the source. */
export function selectorQuery(spec: SourceSpec): Record<string, string | undefined> {
  return { labelSelector: spec.labelSelector || undefined, fieldSelector: spec.fieldSelector || undefined };
}

/** The Accept header of lists and watches, where it is not plain JSON. Servers that know no metadata form send the object. */
export function acceptHeader(spec: SourceSpec, form: "list" | "watch"): Record<string, string> {
  if (spec.representation !== "metadata") return {};
  const kind = form === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return { accept: `application/json;as=${kind};g=meta.k8s.io;v=v1,application/json` };
}

/** What every object of a source says of itself, and the form in which its objects are handed on. */
export class ObjectIdentity {
  readonly apiVersion: string;
  readonly kind: string;
  /** `"apiVersion":"v1","kind":"Pod",` to begin objects with that do not say it. */
  readonly bytes: Buffer;
  /** A definition may give its lists any kind, of which discovery says nothing; its group has a dot, as few others have. */
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

  /** `as-is`, `insert` where an object says nothing or is in its metadata form, `mismatch` for another kind. */
  private judge(apiVersion: string, kind: string): "as-is" | "insert" | "mismatch" {
    if (kind === this.kind && apiVersion === this.apiVersion) return "as-is";
    if (kind === "" && (apiVersion === "" || apiVersion === this.apiVersion)) return "insert";
    if (kind === "PartialObjectMetadata" && apiVersion.startsWith("meta.k8s.io/")) return "insert";
    return apiVersion === "" && kind === this.kind ? "insert" : "mismatch";
  }

  /**
   * The text to hand on of an object that was scanned; undefined for one of another kind. Of a source of metadata it is no
   * more than that, whatever form the server sends.
   */
  bodyOf(object: ObjectScanner, bytes: Buffer, start: number, end: number): Buffer | undefined {
    const form = this.judge(object.apiVersion, object.kind);
    if (form === "mismatch") return undefined;
    if (this.representation === "metadata") return object.metadataBody(bytes, this.bytes);
    return object.body(bytes, start, end, form === "insert" ? this.bytes : undefined);
  }

  /** Where the members of that text are, for who looks for some; undefined where it is not the text that was received. */
  membersOf(object: ObjectScanner, start: number): ObjectMembers | undefined {
    const isReceived = this.representation === "full" && this.judge(object.apiVersion, object.kind) === "as-is";
    return isReceived ? object.members(start) : undefined;
  }

  /** Whether a list that says this of itself is one of other objects: what it leaves out is not gone. */
  refusesList(apiVersion: string, kind: string): boolean {
    if (kind === "" || (kind === "List" && apiVersion === "v1")) return false;
    if (kind === "PartialObjectMetadataList" && apiVersion.startsWith("meta.k8s.io/")) return false;
    if (apiVersion !== "" && apiVersion !== this.apiVersion) return true;
    return this.namesItsLists ? kind === this.kind : kind !== `${this.kind}List`;
  }

  /** The same of a bookmark, in which a server may leave the version of its own storage. */
  refusesBookmark(kind: string): boolean {
    return kind !== "" && kind !== this.kind && kind !== "PartialObjectMetadata";
  }
}
