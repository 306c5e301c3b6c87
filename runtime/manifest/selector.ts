import { isLabelKey, isLabelValue } from "../kube/names.ts";

/** metav1.LabelSelector. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?:
    | readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] | undefined }[]
    | undefined;
}

/** Path within a selector and what is wrong there. */
interface SelectorFault {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

const keyForm = "such as app or example.com/role";
const valueForm = "at most 63 letters, digits, -, _ and .";

/** Returns the faults of a label selector; empty if it is valid. */
export function labelSelectorFaults(selector: LabelSelector): SelectorFault[] {
  const faults: SelectorFault[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    const path = ["matchLabels", key];
    if (!isLabelKey(key)) faults.push({ path, message: `the key is not a label's key, ${keyForm}` });
    else if (!isLabelValue(value)) faults.push({ path, message: `expected a label's value, ${valueForm}` });
  }
  for (const [index, { key, operator, values = [] }] of (selector.matchExpressions ?? []).entries()) {
    const path = ["matchExpressions", index];
    if (!isLabelKey(key)) faults.push({ path: [...path, "key"], message: `expected a label's key, ${keyForm}` });
    const takesValues = operator === "In" || operator === "NotIn";
    const takesNone = operator === "Exists" || operator === "DoesNotExist";
    if (takesValues && values.length === 0) faults.push({ path, message: `${operator} needs values` });
    if (takesNone && values.length > 0) faults.push({ path, message: `${operator} takes no values` });
    for (const [at, value] of values.entries()) {
      if (!isLabelValue(value))
        faults.push({ path: [...path, "values", at], message: `expected a label's value, ${valueForm}` });
    }
  }
  return faults;
}

/**
 * Returns the selector in the API's query form, with the same text for the same meaning: requirements are sorted by key, values
 * are sorted without duplicates, and a set of one becomes an equation. Empty for a selector that selects all.
 */
export function labelQuery(selector: LabelSelector): string {
  const terms = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => ({ key, text: `${key}=${value}` }));
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    terms.push({ key, text: requirement(key, operator, [...new Set(values)].sort()) });
  }
  const texts = terms.sort((a, b) => compare(a.key, b.key) || compare(a.text, b.text)).map(({ text }) => text);
  return [...new Set(texts)].join(",");
}

function requirement(key: string, operator: string, values: readonly string[]): string {
  if (operator === "Exists") return key;
  if (operator === "DoesNotExist") return `!${key}`;
  const [only = ""] = values;
  if (operator === "In") return values.length === 1 ? `${key}=${only}` : `${key} in (${values.join(",")})`;
  return values.length === 1 ? `${key}!=${only}` : `${key} notin (${values.join(",")})`;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Returns a field selector in canonical form, or `undefined` if it is malformed. Its terms are `field=value`, `field==value` or
 * `field!=value`, joined by commas. In a value, `\` escapes a comma, an equals sign or a backslash (apimachinery
 * `fields/selector.go`).
 */
export function fieldQuery(selector: string): string | undefined {
  const terms: string[] = [];
  for (const term of selector.match(/(?:\\.|[^,\\])+|,|\\$/gs)?.filter((part) => part !== ",") ?? []) {
    const [, field, operator, value] =
      /^([A-Za-z][\w.[\]'"/-]*)(!=|==|=)((?:\\[\\,=]|[^\\,=])*)$/.exec(term.trim()) ?? [];
    if (field === undefined || operator === undefined || value === undefined) return undefined;
    terms.push(`${field}${operator === "!=" ? "!=" : "="}${value}`);
  }
  return [...new Set(terms)].sort(compare).join(",");
}
