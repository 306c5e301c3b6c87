// The values that a source delivers to its subscribers.

import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ChangeType } from "../../manifest/function.ts";

/** Metadata that the host scans from an object's bytes without parsing them. */
export interface ObjectMeta {
  /** "" for a cluster-scoped object. */
  readonly namespace: string;
  readonly name: string;
  /** "" for the rare aggregated API that has no uids. */
  readonly uid: string;
  readonly resourceVersion: ResourceVersion;
}

/** Returns `namespace/name`, the key of an object within a source. */
export function objectKey(meta: Pick<ObjectMeta, "namespace" | "name">): string {
  if (last.meta !== meta) {
    last.key = `${meta.namespace}/${meta.name}`;
    last.meta = meta;
  }
  return last.key;
}

/** Cache of the last key: all subscribers of a change look up the same key in turn, so one string is built and hashed once. */
const last: { meta: object | undefined; key: string } = { meta: undefined, key: "" };

/** One listed object, or one live change of an object. */
export interface Change {
  readonly type: ChangeType;
  readonly meta: ObjectMeta;
  /**
   * The object's JSON text in UTF-8, without `metadata.managedFields`. Shared and never written to. It may be a view of a
   * socket's 64 KiB chunk: copy it to keep it longer than a delivery takes.
   */
  readonly body: Buffer;
  /** Offsets of the object's members in the body, if known. */
  readonly members?: ObjectMembers | undefined;
  /** `performance.now()` when its last byte was received; for latency figures. */
  readonly receivedAt: number;
}

/** Offsets of an object's members in its JSON text, in order, duplicate keys included: four offsets per member. */
export type ObjectMembers = readonly number[];

/** Indexes of the offsets of one member: its key's text without quotes, and its value. */
export const memberOffsets = { keyStart: 0, keyEnd: 1, valueStart: 2, valueEnd: 3, count: 4 } as const;

const metadataKey = Buffer.from("metadata");
const backslash = 0x5c;
/** Extra bytes of a key that spells one letter as `\u0061`. */
const escapeBytes = 5;

/** Returns the span of the object's own `metadata` value; `undefined` if it is absent, or if a key must be decoded to find it. */
export function metadataIn(
  members: ObjectMembers,
  body: Buffer,
): { readonly at: number; readonly end: number } | undefined {
  let found: { readonly at: number; readonly end: number } | undefined;
  for (let index = 0; index < members.length; index += memberOffsets.count) {
    const start = members[index + memberOffsets.keyStart] as number;
    const end = members[index + memberOffsets.keyEnd] as number;
    const length = end - start;
    if (length >= metadataKey.length + escapeBytes && isEscaped(body, start, end)) return undefined;
    if (length !== metadataKey.length || !isMetadata(body, start)) continue;
    found = {
      at: members[index + memberOffsets.valueStart] as number,
      end: members[index + memberOffsets.valueEnd] as number,
    };
  }
  return found;
}

function isEscaped(body: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (body[at] === backslash) return true;
  return false;
}

/** Compares byte by byte: a call into Node takes longer than eight comparisons. */
function isMetadata(body: Buffer, start: number): boolean {
  for (let at = 0; at < metadataKey.length; at++) if (body[start + at] !== metadataKey[at]) return false;
  return true;
}
