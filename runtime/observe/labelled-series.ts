/** A node of the tree of label values: the series of the values that lead here, and the longer ones below. */
interface Branch<T> {
  counted: T | undefined;
  readonly below: Map<string, Branch<T>>;
}

/** The series of one metric family, found by their label values without creating a string of them. */
export class LabelledSeries<T> {
  /** All series with their labels as printed between the braces, in order of creation. */
  readonly all: { readonly labels: string; readonly counted: T }[] = [];
  private readonly labelNames: readonly string[];
  private readonly make: () => T;
  private readonly root: Branch<T> = { counted: undefined, below: new Map() };
  /** The last lookup: most events of one function have the same labels as the preceding one. */
  private last: { readonly values: readonly string[]; readonly counted: T } | undefined;

  /** A family without labels has its one series from the beginning. */
  constructor(labelNames: readonly string[], make: () => T) {
    this.labelNames = labelNames;
    this.make = make;
    if (labelNames.length === 0) this.at([]);
  }

  /** Returns a series. `values`: the values of all labels, in the order of their names. */
  at(values: readonly string[]): T {
    const { last } = this;
    if (last && isSame(last.values, values)) return last.counted;
    const counted = this.find(values);
    this.last = { values, counted };
    return counted;
  }

  /** Returns the series whose first label has this value, each with the values of its other labels. */
  *below(first: string): Iterable<readonly [others: readonly string[], counted: T]> {
    const begun: [string[], Branch<T> | undefined][] = [[[], this.root.below.get(first)]];
    for (let next = begun.pop(); next; next = begun.pop()) {
      const [others, branch] = next;
      if (branch?.counted !== undefined) yield [others, branch.counted];
      for (const [value, lower] of branch?.below ?? []) begun.push([[...others, value], lower]);
    }
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

/** Returns `function="copy",trigger="settings"`, in Prometheus' format. */
export const labelsText = (names: readonly string[], values: readonly string[]): string =>
  names.map((name, index) => `${name}="${escaped(values[index] ?? "")}"`).join(",");

/** Returns one sample's line. */
export const lineOf = (name: string, labels: string, value: number): string =>
  `${name}${labels === "" ? "" : `{${labels}}`} ${valueText(value)}`;

const valueText = (value: number): string =>
  Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };
const escaped = (text: string): string => text.replace(/[\\"\n]/g, (each) => escapes[each] ?? each);
