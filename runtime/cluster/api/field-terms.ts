/** One requirement of a field selector. */
export interface FieldTerm {
  label: string;
  value: string;
  equal: boolean;
  /** The fault of the value's escapes, in apimachinery's words. */
  fault?: string;
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
    const fault = escapeFault(value);
    const parsed = { label, value: value.replace(/\\([\\,=])/g, "$1"), equal: operator !== "!=" };
    return fault === undefined ? parsed : { ...parsed, fault };
  });
}

function escapeFault(value: string): string | undefined {
  const wrong = value.match(/\\.?/gs)?.find((pair) => !/^\\[\\,=]$/.test(pair));
  if (wrong !== undefined) return `invalid escape sequence: ${wrong}`;
  return value.replace(/\\./gs, "").includes("=") ? "unescaped character in value: 61" : undefined;
}
