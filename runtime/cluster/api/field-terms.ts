/** One requirement of a field selector. */
export interface FieldTerm {
  label: string;
  value: string;
  equal: boolean;
}

/**
 * Splits a field selector into its requirements, in the alphabetical order of their texts. `\` escapes `,`, `=` and itself. A
 * part that is not a requirement is returned as its text.
 */
export function fieldTerms(selector: string): (FieldTerm | string)[] {
  const terms = selector.match(/(?:[^\\,]|\\.)+/gs) ?? [];
  return terms.sort().map((term) => {
    const [, label, operator, value = ""] = /^((?:[^\\=!]|\\.)*)(==|!=|=)(.*)$/s.exec(term) ?? [];
    if (label === undefined) return term;
    return { label, value: value.replace(/\\([\\,=])/g, "$1"), equal: operator !== "!=" };
  });
}
