import { objectName } from "./names.ts";

/** A value as a field selector has it (apimachinery `fields.EscapeValue`). */
export const escapedValue = (value: string): string => value.replace(/[\\,=]/g, "\\$&");

/**
 * The one name that a list or a watch with this field selector asks for; undefined where objects of other names may be among
 * them. For authorizers it is the request's name, so that a rule with `resourceNames` grants it. As the API server does it
 * (apiserver `endpoints/request/requestinfo.go`), that is the first equation on `metadata.name` in the order of the terms' texts.
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
