/** Where the members of an object lie in its JSON text, in their order, keys that stand twice included: four offsets each. */
export type ObjectMembers = readonly number[];

/** Offsets of one member: its key's text without quotes, and its value. */
export const memberOffsets = { keyStart: 0, keyEnd: 1, valueStart: 2, valueEnd: 3, count: 4 } as const;
