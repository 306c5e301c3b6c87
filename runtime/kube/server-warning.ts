import { clean, cut } from "../base/wording.ts";

/** A value of the `Warning` header: its code, an agent and a quoted text (RFC 7234, section 5.5). API servers send 299 alone. */
const warning = /299 \S+ "((?:[^"\\]|\\.)*)"/g;

/** Characters of a text, as an API server cuts it (`apiserver` pkg/endpoints/filters/warning.go, `truncateItemRunes`). */
const longestText = 256;

/** Returns the texts of an answer's `Warning` header, without control characters. */
export function warningsIn(header: string | string[] | undefined): string[] {
  if (header === undefined) return [];
  const found = [header].flat().join(", ").matchAll(warning);
  return [...found].map(([, quoted = ""]) => cut(clean(quoted.replace(/\\(.)/g, "$1")), longestText));
}
