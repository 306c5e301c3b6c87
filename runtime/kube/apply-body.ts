/** Media type of a server-side apply: its body is YAML, which includes JSON. */
export const applyType = "application/apply-patch+yaml";

/** Characters that YAML reads differently from JSON, or refuses: DEL, and all beyond ASCII except surrogate pairs. */
const notPlain = /[\x7f-\ud7ff\ue000-\uffff]/g;

/**
 * Returns the body of a server-side apply: JSON that a YAML parser reads as the same value. YAML folds U+0085, U+2028 and U+2029
 * as line breaks, and refuses other characters. Surrogate pairs stay, because YAML has no escape for half of a pair.
 */
export const applyBody = (object: object): string =>
  JSON.stringify(object).replace(
    notPlain,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
