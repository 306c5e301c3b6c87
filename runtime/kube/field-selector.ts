import { objectName } from "./names.ts";

/** Escapes a value for a field selector (apimachinery `fields.EscapeValue`). */
export const escapedValue = (value: string): string => value.replace(/[\\,=]/g, "\\$&");

/**
 * Returns the one name that a list or watch with this field selector requests; `undefined` if it may contain objects of other
 * names. Authorizers see it as the request's name, so a rule with `resourceNames` can grant it. As in the API server (apiserver
 * `endpoints/request/requestinfo.go`), it is the first equation on `metadata.name` in the order of the terms' texts.
 */
export function requiredName(selector: string): string | undefined {
  const terms = selector.match(/(?:[^,\\]|\\.)+/gs) ?? [];
  for (const term of terms.sort()) {
    const [, value] = /^metadata\.name==?((?:[^,=\\]|\\[,=\\])*)$/s.exec(term) ?? [];
    if (value === undefined) continue;
    const name = value.replace(/\\(.)/gs, "$1");
    return objectName.test(name) ? name : undefined;
  }
  return undefined;
}
