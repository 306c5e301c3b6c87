/** One requirement of a field selector. */
export interface FieldTerm {
  label: string;
  value: string;
  equal: boolean;
}

/** The requirements of a selector, in the order of their texts; `\` escapes `,`, `=` and itself. A text is a term that is none. */
export function fieldTerms(selector: string): (FieldTerm | string)[] {
  const terms = selector.match(/(?:[^\\,]|\\.)+/gs) ?? [];
  return terms.sort().map((term) => {
    const [, label, operator, value = ""] = /^((?:[^\\=!]|\\.)*)(==|!=|=)(.*)$/s.exec(term) ?? [];
    if (label === undefined) return term;
    return { label, value: value.replace(/\\([\\,=])/g, "$1"), equal: operator !== "!=" };
  });
}
