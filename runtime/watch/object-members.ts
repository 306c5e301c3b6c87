/** Where the members of an object lie in its JSON text, in their order, keys that stand twice included: four offsets each. */
export type ObjectMembers = readonly number[];

/** Offsets of one member: its key's text without quotes, and its value. */
export const memberOffsets = { keyStart: 0, keyEnd: 1, valueStart: 2, valueEnd: 3, count: 4 } as const;

const metadataKey = Buffer.from("metadata");
const backslash = 0x5c;

/** Where the value of an object's own `metadata` is; undefined where it has none, or a key that has to be read to be known. */
export function metadataIn(
  members: ObjectMembers,
  body: Buffer,
): { readonly at: number; readonly end: number } | undefined {
  let found: { readonly at: number; readonly end: number } | undefined;
  for (let index = 0; index < members.length; index += memberOffsets.count) {
    const start = members[index + memberOffsets.keyStart] as number;
    const end = members[index + memberOffsets.keyEnd] as number;
    for (let at = start; at < end; at++) if (body[at] === backslash) return undefined;
    if (end - start !== metadataKey.length || body.compare(metadataKey, 0, metadataKey.length, start, end) !== 0)
      continue;
    found = {
      at: members[index + memberOffsets.valueStart] as number,
      end: members[index + memberOffsets.valueEnd] as number,
    };
  }
  return found;
}
