import { WatchfireError } from "../base/errors.ts";
import { isLabelKey, isLabelValue } from "./names.ts";

/** An object's labels. */
export type Labels = Readonly<Record<string, string>>;

/** One requirement of a selector: returns whether labels meet it. */
type Requirement = (labels: Labels) => boolean;

/** Most requirements of one selector: far above any real one. */
const mostRequirements = 100;

/**
 * Compiles a label selector in the API's query form (`a=b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, joined by commas)
 * to a function of labels. "" selects everything.
 * @throws WatchfireError WF_READS_SELECTOR
 */
export function labelQuery(selector: string): (labels: Labels) => boolean {
  const terms = selector.match(/[^,(]+(?:\([^)]*\))?[^,(]*/g) ?? [];
  if (terms.length > mostRequirements || terms.join(",").length !== selector.length) throw unreadable(selector);
  const requirements = terms.map((term) => requirement(term.trim()) ?? fail(selector));
  return (labels) => requirements.every((holds) => holds(labels));
}

function requirement(term: string): Requirement | undefined {
  const set = /^(\S+) +(in|notin) *\(([^()]*)\)$/.exec(term);
  if (set) {
    const [, key = "", operator, list = ""] = set;
    const values = list.split(",").map((value) => value.trim());
    if (!isLabelKey(key) || !values.every(isLabelValue)) return undefined;
    // As in the API, labels without the key are in no set.
    const isIn: Requirement = (labels) => Object.hasOwn(labels, key) && values.includes(labels[key] as string);
    return operator === "in" ? isIn : (labels) => !isIn(labels);
  }
  const equation = /^([^\s=!]+) *(!=|==?) *([^\s=!]*)$/.exec(term);
  if (equation) {
    const [, key = "", operator, value = ""] = equation;
    if (!isLabelKey(key) || !isLabelValue(value)) return undefined;
    const equals: Requirement = (labels) => Object.hasOwn(labels, key) && labels[key] === value;
    return operator === "!=" ? (labels) => !equals(labels) : equals;
  }
  const [, no = "", key = ""] = /^(!?) *([^\s=!]+)$/.exec(term) ?? [];
  if (!isLabelKey(key)) return undefined;
  return no === "" ? (labels) => Object.hasOwn(labels, key) : (labels) => !Object.hasOwn(labels, key);
}

const unreadable = (selector: string): WatchfireError =>
  new WatchfireError("WF_READS_SELECTOR", { what: "the label selector cannot be read", actual: selector });

function fail(selector: string): never {
  throw unreadable(selector);
}
