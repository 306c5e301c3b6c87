// Door: what a source hands to its subscribers.

import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ChangeType } from "../../manifest/function.ts";
import type { ObjectMembers } from "./object-members.ts";

/** What the host scans from an object's bytes without parsing them. */
export interface ObjectMeta {
  /** "" for a cluster-scoped object. */
  readonly namespace: string;
  readonly name: string;
  /** "" for the rare aggregated API that gives none. */
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
}

/** `namespace/name`, the key of an object within a source. */
export function objectKey(meta: Pick<ObjectMeta, "namespace" | "name">): string {
  if (last.meta !== meta) {
    last.key = `${meta.namespace}/${meta.name}`;
    last.meta = meta;
  }
  return last.key;
}

/** All who hear of a change ask one after the other: one text is hashed once. */
const last: { meta: object | undefined; key: string } = { meta: undefined, key: "" };

/** One object as it was listed, or one live change of it. */
export interface Change {
  readonly type: ChangeType;
  readonly meta: ObjectMeta;
  /**
   * The object's JSON text in UTF-8, without `metadata.managedFields`. Shared and never written to. It may be a view of
   * a socket's 64 KiB chunk: whoever keeps it for longer than a delivery takes copies it.
   */
  readonly body: Buffer;
  /** Where its members are in the body, where that is known. */
  readonly members?: ObjectMembers | undefined;
  /** `performance.now()` when its last byte was received; for latency figures. */
  readonly receivedAt: number;
}
