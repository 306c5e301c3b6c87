// Door: what a source hands to its subscribers.

import type { ResourceVersion } from "../../base/resource-version.ts";
import type { ChangeType } from "../../manifest/function.ts";

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

/** Where the members of an object lie in its JSON text, in their order, keys that stand twice included: four offsets each. */
export type ObjectMembers = readonly number[];

/** Offsets of one member: its key's text without quotes, and its value. */
export const memberOffsets = { keyStart: 0, keyEnd: 1, valueStart: 2, valueEnd: 3, count: 4 } as const;

const metadataKey = Buffer.from("metadata");
const backslash = 0x5c;
/** A key that spells one letter as `\u0061` is so much longer. */
const escapeBytes = 5;

/** Where the value of an object's own `metadata` is; undefined where it has none, or a key that has to be read to be known. */
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

/** Byte by byte: a call into Node takes longer than eight of them. */
function isMetadata(body: Buffer, start: number): boolean {
  for (let at = 0; at < metadataKey.length; at++) if (body[start + at] !== metadataKey[at]) return false;
  return true;
}
