import type { KubeObject } from "../api/object.ts";
import type { User } from "../auth/user.ts";
import type { Clock } from "../clock.ts";
import type { Registry } from "../kinds/registry/registry.ts";
import { keyOf, type ResourceType } from "../kinds/resource-type.ts";
import type { Store } from "../storage/store.ts";

/** Services that every request uses. */
export interface Backend {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: Clock;
  /** Throws if the user may not write the object, although they may write its kind. */
  readonly admit: (call: Call, object: KubeObject) => void;
  /** Throws a 403 if the user may not create the object that a PUT or an apply names and that does not exist. */
  readonly admitNew: (call: Call) => void;
}

/** Handling of unknown and duplicate fields. */
export type FieldValidation = "Strict" | "Warn" | "Ignore";

/** One request on one resource, parsed and authorized. */
export interface Call {
  readonly backend: Backend;
  readonly type: ResourceType;
  /** "" if the resource has no namespace, or if the request covers all namespaces. */
  readonly namespace: string;
  /** "" for requests on a collection. */
  readonly name: string;
  readonly subresource: string;
  readonly user: User;
  readonly query: URLSearchParams;
  /** Field manager that will own the fields the request sets. */
  readonly manager: string;
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
  /** Texts for `Warning` headers. */
  readonly warnings: string[];
}

/** The storage key that the request names. */
export function callKey(call: Call): string {
  return keyOf(call.namespace, call.name);
}
