// Layout of the module's memory, shared by both sides. Slots, members and cuts are in words of 32 bits.

/** The fields that are located, in the order of their levels: fields of a line, of its object, of the object's metadata. */
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

/** Address of the fields' names, which the host writes: each is followed by zeros, and its length is the last byte. */
export const names = 2048;
export const nameBytes = 16;

/** First word of the slots, one per field: start and end of its value (0 if absent), and the value's form. */
export const slots = 256;
export const slotWords = 3;

/** Forms of a value: not a string; a string whose bytes are its text; a string that has to be decoded. */
export const noString = 0;
export const plainString = 1;
export const codedString = 2;

/** First word of the object's members: start and end of a key without its quotes, and of its value. */
export const members = 320;
export const memberWords = 4;
/** Members beyond this number are counted but not kept. */
export const mostMembers = 16;
/** Word that holds the number of members. */
export const memberCount = 300;

/** Words that hold the number of cuts, and the index of the word where they begin. */
export const cutCount = 301;
export const cutsAt = 302;
/** Words per cut: start and end of text that may be left out, and 1 if it is the object's own `kind` or `apiVersion`. */
export const cutWords = 3;
/** Shortest text that is cut, in bytes: `"kind":0,`. */
export const leastCut = 9;

/** Address of the text. */
export const text = 16_384;
/** Number of zero bytes after the text, which no JSON holds. The cuts follow them. */
export const textMargin = 32;
