import { at, type KubeObject } from "../api/object.ts";
import type { FieldFault } from "../api/status.ts";
import type { Schema } from "../schema/index.ts";

/** A printed column: its name and the function that computes its cell. */
export interface Column {
  name: string;
  type?: "string" | "integer" | "number" | "boolean" | "date";
  format?: string;
  description?: string;
  /** Above 0: shown only by `-o wide`. */
  priority?: number;
  cell: (object: KubeObject, now: number) => unknown;
}

/** The fields behind a `/scale` subresource, as dotted paths. */
export interface ScalePaths {
  spec: string;
  status: string;
  /** The label selector, as a string or as metav1.LabelSelector. */
  selector?: string;
}

/** Syntax that a name must have. */
export type NameRule = "subdomain" | "label" | "label1035" | "segment";

/**
 * The server's behaviour for one kind beyond storing it. Everything is optional: without traits, a kind is plainly stored.
 */
export interface Traits {
  nameRule?: NameRule;
  shortNames?: string[];
  categories?: string[];
  /** Field selectors beyond metadata.name and metadata.namespace, by their dotted label. */
  fields?: Record<string, (object: KubeObject) => string>;
  columns?: Column[];
  /** Has a `/status` subresource, the only endpoint that writes `.status`. */
  status?: boolean;
  scale?: ScalePaths;
  /** Writes without a resourceVersion are refused. */
  needsResourceVersion?: boolean;
  /** A PUT creates the object if it does not exist. */
  createOnUpdate?: boolean;
  /** A deletion answers with the object instead of a Status. */
  returnsDeleted?: boolean;
  /** metadata.generation counts changes outside metadata and status. */
  generation?: boolean;
  /** Lists, by their dotted path, that keep their defaults away if they are empty, as a slice of Go does that is not nil. */
  keptLists?: readonly string[];
  /** Changes an incoming object in place. `old` is absent for a creation. */
  prepare?: (object: KubeObject, old: KubeObject | undefined) => void;
  /** Faults that the schema cannot express. */
  check?: (object: KubeObject, old: KubeObject | undefined) => FieldFault[];
  /** Grace period of a deletion in seconds, if the client does not set it. */
  grace?: (object: KubeObject) => number;
  /** Warnings for the client, as in the `Warning` header. */
  warn?: (object: KubeObject) => string[];
}

/** One resource as one version serves it. */
export interface ResourceType extends Traits {
  group: string;
  version: string;
  kind: string;
  listKind: string;
  plural: string;
  singular: string;
  namespaced: boolean;
  /**
   * The collection that holds its objects. All versions share it, and so do resources that are views of one another.
   */
  storage: string;
  /** A custom resource: `custom` is the CRD that defines it. */
  custom?: KubeObject;
  /** Convert a stored object to this version and back. Default: only apiVersion differs. */
  fromStorage?: (object: KubeObject) => KubeObject;
  toStorage?: (object: KubeObject) => KubeObject;
  verbs: readonly string[];
  schema: () => Schema | undefined;
  /** The schema of the stored form, if its fields differ from those of the served form. */
  storageSchema?: () => Schema | undefined;
}

/** The verbs of a resource that is stored. */
export const storedVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] as const;

/** The apiVersion under which a resource is served. */
export function servedVersion(type: ResourceType): string {
  return type.group === "" ? type.version : `${type.group}/${type.version}`;
}

/** Converts a stored object to the requested version. */
export function present(type: ResourceType, object: KubeObject): KubeObject {
  if (type.fromStorage) return type.fromStorage(object);
  const apiVersion = servedVersion(type);
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}

/** The storage key of an object. */
export function keyOf(namespace: string | undefined, name: string): string {
  return namespace ? `${namespace}/${name}` : name;
}

/** A field selector on the string at a path. */
export const field =
  (path: string) =>
  (object: KubeObject): string => {
    const value = at(object, path);
    return value === undefined || value === null ? "" : String(value);
  };
