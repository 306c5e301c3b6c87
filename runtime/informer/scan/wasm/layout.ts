// The layout of the module's memory, which both sides read. Slots, members and cuts are in words of 32 bits.

/** The fields that are found, in their order by level: of a line, of its object, of the object's metadata. */
export const noField = 0;
export const typeField = 1;
export const objectField = 2;
export const kindField = 3;
export const apiVersionField = 4;
export const metadataField = 5;
export const nameField = 6;
export const namespaceField = 7;
export const uidField = 8;
export const resourceVersionField = 9;
export const annotationsField = 10;
export const managedFieldsField = 11;

/** The byte where the fields' names begin, which the host writes: each of them followed by zeros, and its length last. */
export const names = 2048;
export const nameBytes = 16;

/** The word where the slots begin, one for each field: start and end of its value, 0 where it is absent, and the value's form. */
export const slots = 256;
export const slotWords = 3;

/** Forms of a value: no string; a string whose bytes are its text; a string that has to be decoded. */
export const noString = 0;
export const plainString = 1;
export const codedString = 2;

/** The word where the members of the object begin: start and end of a key without its quotes, and of its value. */
export const members = 320;
export const memberWords = 4;
/** An object may have more: they are counted, not kept. */
export const mostMembers = 16;
/** The word with their number. */
export const memberCount = 300;

/** The words with the number of cuts, and with the word where they begin. */
export const cutCount = 301;
export const cutsAt = 302;
/** Start and end of what may be left out, and 1 where it is the object's own `kind` or `apiVersion`. */
export const cutWords = 3;
/** No cut is made for fewer bytes of text: `"kind":0,`. */
export const leastCut = 9;

/** The byte where the text begins. */
export const text = 16_384;
/** Beyond the text are as many zeros, which no JSON holds. Then come the cuts. */
export const textMargin = 32;
