/** The media type of a server-side apply: its body is YAML, as which JSON is read too. */
export const applyType = "application/apply-patch+yaml";

/** Characters that YAML reads otherwise than JSON, or refuses: all beyond ASCII but pairs of surrogates, and DEL. */
const notPlain = /[\x7f-\ud7ff\ue000-\uffff]/g;

/**
 * The body of a server-side apply: JSON that a YAML parser reads as the same. YAML folds U+0085, U+2028 and U+2029 as line
 * breaks, and refuses other characters. Pairs of surrogates stay, since YAML has no escape for a half of one.
 */
export const applyBody = (object: object): string =>
  JSON.stringify(object).replace(
    notPlain,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
