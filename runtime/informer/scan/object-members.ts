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
