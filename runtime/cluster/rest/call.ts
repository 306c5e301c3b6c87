import type { KubeObject } from "../api/object.ts";
import type { User } from "../auth/user.ts";
import type { Clock } from "../clock.ts";
import type { Registry } from "../kinds/registry/registry.ts";
import { keyOf, type ResourceType } from "../kinds/resource-type.ts";
import type { Store } from "../storage/store.ts";

/** What every request works on. */
export interface Backend {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: Clock;
  /** Refuses, by throwing, what a user may not write although they may write the kind. */
  readonly admit: (call: Call, object: KubeObject) => void;
}

/** How strictly unknown and duplicate fields are taken. */
export type FieldValidation = "Strict" | "Warn" | "Ignore";

/** One request on one resource, understood and allowed. */
export interface Call {
  readonly backend: Backend;
  readonly type: ResourceType;
  /** "" where the resource has none, or the request spans all. */
  readonly namespace: string;
  /** "" for requests on the collection. */
  readonly name: string;
  readonly subresource: string;
  readonly user: User;
  readonly query: URLSearchParams;
  /** Who owns the fields that the request sets. */
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
