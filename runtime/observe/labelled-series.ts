/** What is counted for the label values that lead here, and for those that begin with them. */
interface Branch<T> {
  counted: T | undefined;
  readonly below: Map<string, Branch<T>>;
}

/** The series of one family, found by their label values without a string of them all being made. */
export class LabelledSeries<T> {
  /** With its labels as they are written between the braces; in the order in which they came. */
  readonly all: { readonly labels: string; readonly counted: T }[] = [];
  private readonly labelNames: readonly string[];
  private readonly make: () => T;
  private readonly root: Branch<T> = { counted: undefined, below: new Map() };
  /** What was asked for last: of one function's events, most have the same labels as the one before. */
  private last: { readonly values: readonly string[]; readonly counted: T } | undefined;

  /** One without labels is there from the beginning. */
  constructor(labelNames: readonly string[], make: () => T) {
    this.labelNames = labelNames;
    this.make = make;
    if (labelNames.length === 0) this.at([]);
  }

  /** `values`: of all labels, in the order of their names. */
  at(values: readonly string[]): T {
    const { last } = this;
    if (last && isSame(last.values, values)) return last.counted;
    const counted = this.find(values);
    this.last = { values, counted };
    return counted;
  }

  private find(values: readonly string[]): T {
    let branch = this.root;
    for (const value of values) {
      let next = branch.below.get(value);
      if (!next) {
        next = { counted: undefined, below: new Map() };
        branch.below.set(value, next);
      }
      branch = next;
    }
    if (branch.counted === undefined) {
      branch.counted = this.make();
      this.all.push({ labels: labelsText(this.labelNames, values), counted: branch.counted });
    }
    return branch.counted;
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}

/** `function="copy",trigger="settings"`, as Prometheus reads it. */
export const labelsText = (names: readonly string[], values: readonly string[]): string =>
  names.map((name, index) => `${name}="${escaped(values[index] ?? "")}"`).join(",");

/** A line of a page. */
export const lineOf = (name: string, labels: string, value: number): string =>
  `${name}${labels === "" ? "" : `{${labels}}`} ${valueText(value)}`;

const valueText = (value: number): string =>
  Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };
const escaped = (text: string): string => text.replace(/[\\"\n]/g, (each) => escapes[each] ?? each);
