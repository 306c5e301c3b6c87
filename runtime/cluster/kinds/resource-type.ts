import { at, type KubeObject } from "../api/object.ts";
import type { FieldFault } from "../api/status.ts";
import type { Schema } from "../schema/index.ts";

/** A printed column: a name and where its cell comes from. */
export interface Column {
  name: string;
  type?: "string" | "integer" | "number" | "boolean" | "date";
  format?: string;
  description?: string;
  /** Above 0: shown only by `-o wide`. */
  priority?: number;
  cell: (object: KubeObject, now: number) => unknown;
}

/** Where a `/scale` subresource finds its numbers, as dotted paths. */
export interface ScalePaths {
  spec: string;
  status: string;
  /** The label selector, as a string or as metav1.LabelSelector. */
  selector?: string;
}

/** What a name must be. */
export type NameRule = "subdomain" | "label" | "label1035" | "segment";

/** What the server does with one kind beyond storing it. Everything is optional: without any it is plain storage. */
export interface Traits {
  nameRule?: NameRule;
  shortNames?: string[];
  categories?: string[];
  /** Field selectors beyond metadata.name and metadata.namespace, by their dotted label. */
  fields?: Record<string, (object: KubeObject) => string>;
  columns?: Column[];
  /** Has `/status`, which alone writes `.status`. */
  status?: boolean;
  scale?: ScalePaths;
  /** Writes without a resourceVersion are refused. */
  needsResourceVersion?: boolean;
  /** A PUT to a name that is free creates it. */
  createOnUpdate?: boolean;
  /** A deletion answers the object instead of a Status. */
  returnsDeleted?: boolean;
  /** metadata.generation counts changes outside metadata and status. */
  generation?: boolean;
  /** Changes an object on its way in, in place. `old` is absent for a creation. */
  prepare?: (object: KubeObject, old: KubeObject | undefined) => void;
  /** Faults that the schema cannot see. */
  check?: (object: KubeObject, old: KubeObject | undefined) => FieldFault[];
  /** Seconds an object lingers after DELETE, if the caller names none. */
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
  /** The collection that holds its objects: shared by all versions, and by resources that are views of one another. */
  storage: string;
  /** A custom resource: `custom` is the CRD that defines it. */
  custom?: KubeObject;
  /** Turns a stored object into this version and back. Without: only apiVersion differs. */
  fromStorage?: (object: KubeObject) => KubeObject;
  toStorage?: (object: KubeObject) => KubeObject;
  verbs: readonly string[];
  schema: () => Schema | undefined;
  /** The schema of the stored form, where that has other fields than the served one. */
  storageSchema?: () => Schema | undefined;
}

/** The verbs of a resource that is stored. */
export const storedVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"] as const;

/** The apiVersion under which a resource is served. */
export function servedVersion(type: ResourceType): string {
  return type.group === "" ? type.version : `${type.group}/${type.version}`;
}

/** A stored object in the version that was asked for. */
export function present(type: ResourceType, object: KubeObject): KubeObject {
  if (type.fromStorage) return type.fromStorage(object);
  const apiVersion = servedVersion(type);
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}

/** The storage key of an object. */
export function keyOf(namespace: string | undefined, name: string): string {
  return namespace ? `${namespace}/${name}` : name;
}

/** A field selector on a string at a path. */
export const field =
  (path: string) =>
  (object: KubeObject): string => {
    const value = at(object, path);
    return value === undefined || value === null ? "" : String(value);
  };
