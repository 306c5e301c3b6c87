import { exactly, most, plus, productOf, type Size, share, sumOf, times, unknownSize } from "./cost-size.ts";

/** Cost of reading a character of a text, and of a pattern: common/cost.go of cel-go. */
export const perCharacter = 0.1;
const perPatternCharacter = 0.25;

/** An operand of a call, as the functions' estimates need it. */
export interface Operand {
  readonly size: Size;
  /** Name of its type; `dyn` if unknown. */
  readonly type: string;
  /** Type and size of a list's items. */
  readonly item?: { readonly type: string; readonly size: Size } | undefined;
  /** The value of a literal int. */
  readonly literal?: number | undefined;
}

/** Cost of a call without its operands, and the size of its result. */
interface CallCost {
  readonly cost: number;
  readonly size?: Size;
}

/** `of`: the receiver of a method, or the first argument of a function. */
type Estimate = (of: Operand, args: readonly Operand[]) => CallCost;

const isText = (type: string): boolean => type === "string" || type === "bytes";

const fixed =
  (cost: number): Estimate =>
  () => ({ cost });
const traversal =
  (factor: number): Estimate =>
  ({ size }) => ({ cost: share(size, factor) });
const copied: Estimate = ({ size }) => ({ cost: share(size, perCharacter), size });

/** Compares each item of a list once, or reads a text. */
const search: Estimate = ({ size, item }) => {
  if (!item) return { cost: share(size, perCharacter) };
  return { cost: times(size.max, 1 + (isText(item.type) ? share(item.size, perCharacter) : 0)) };
};

/** An empty pattern or text costs as much as one character, so that no factor is zero. */
const match =
  (isFound: boolean): Estimate =>
  ({ size }, [pattern]) => {
    const cost = times(
      share(sumOf(size, exactly(1)), perCharacter),
      share(pattern?.size ?? unknownSize, perPatternCharacter),
    );
    return isFound ? { cost, size: { min: 0, max: size.max } } : { cost };
  };

function replace({ size }: Operand, [from, to]: readonly Operand[]): CallCost {
  const [replaced, by] = [from?.size ?? unknownSize, to?.size ?? unknownSize];
  const cost = share(size, 2 * perCharacter);
  const longest = (): number => {
    if (replaced.min === 0) return plus(times(plus(size.max, 1), by.max), size.max);
    return by.max <= replaced.min ? size.max : times(Math.ceil(size.max / replaced.min), by.max);
  };
  const shortest = (): number => {
    if (replaced.max === 0) return plus(times(plus(size.min, 1), by.min), size.min);
    return replaced.max <= by.min ? size.min : times(Math.ceil(size.min / replaced.max), by.min);
  };
  return { cost, size: { min: shortest(), max: longest() } };
}

function join({ size, item }: Operand, [separator]: readonly Operand[]): CallCost {
  const items = item ? productOf(size, item.size) : exactly(0);
  const gaps = { min: Math.max(0, size.min - 1), max: Math.max(0, size.max - 1) };
  const made = separator ? sumOf(items, productOf(separator.size, gaps)) : items;
  return { cost: share(made, perCharacter), size: made };
}

/** Cost of a new list: of its size, and per item. */
const made = (size: Size, factor: number): CallCost => ({ cost: plus(share(size, factor), 1 + 10), size });

const sort: Estimate = ({ size, item }) =>
  made(productOf(size, size), item && isText(item.type) ? 2 + perCharacter : 2);

/** Addresses have 4 or 16 bytes, and two of them are compared. */
const contains =
  (comparing: number): Estimate =>
  (_, [other]) => {
    const parsing = other && other.type !== "net.IP" && other.type !== "net.CIDR";
    return { cost: plus(comparing, parsing ? share(other.size, perCharacter) : 0) };
  };

const sets =
  (factor: number): Estimate =>
  ({ size }, [other]) => ({ cost: plus(times(times(size.max, other?.size.max ?? most), factor), 1) });

const group = (estimate: Estimate, names: string): readonly (readonly [string, Estimate])[] =>
  names.split(" ").map((name) => [name, estimate]);

/** Estimates of functions whose cost is not 1: library/cost.go of k8s.io/apiserver, checker/cost.go and ext/ of cel-go. */
const estimates: ReadonlyMap<string, Estimate> = new Map([
  ...group(search, "isSorted sum max min indexOf lastIndexOf"),
  ...group(copied, "url lowerAscii upperAscii substring trim"),
  ...group(traversal(perCharacter), "isIP cidr isCIDR quantity isQuantity semver isSemver format"),
  ...group(traversal(2 * perCharacter), "ip.isCanonical"),
  ...group(match(false), "matches"),
  ...group(match(true), "find findAll"),
  ["replace", replace],
  ["join", join],
  [
    "split",
    ({ size }, [, limit]) => ({
      cost: share(size, 2 * perCharacter),
      size: { min: 0, max: limit?.literal === undefined ? size.max : limit.literal < 0 ? most : limit.literal },
    }),
  ],
  ["ip", ({ size, type }) => ({ cost: type === "net.CIDR" ? 1 : share(size, perCharacter) })],
  ["containsIP", contains(4)],
  ["containsCIDR", contains(7)],
  ["validate", (_, [text]) => ({ cost: times(share(text?.size ?? unknownSize, perCharacter), 32) })],
  ["startsWith", (_, [part]) => ({ cost: share(part?.size ?? unknownSize, perCharacter) })],
  ["endsWith", (_, [part]) => ({ cost: share(part?.size ?? unknownSize, perCharacter) })],
  [
    "contains",
    ({ size }, [part]) => ({
      cost: times(share(size, perCharacter), share(part?.size ?? unknownSize, perCharacter)),
    }),
  ],
  [
    "bytes",
    ({ size, type }) =>
      type === "bytes"
        ? { cost: 1 }
        : { cost: share(size, perCharacter), size: { min: size.min, max: times(size.max, 4) } },
  ],
  [
    "string",
    ({ size, type }) =>
      type === "bytes" || type === "dyn"
        ? { cost: share(size, perCharacter), size: { min: Math.floor(size.min / 4), max: size.max } }
        : { cost: 1 },
  ],
  [
    "strings.quote",
    ({ size }) => ({ cost: share(size, perCharacter), size: { min: size.min + 2, max: plus(times(size.max, 2), 2) } }),
  ],
  ["slice", ({ size }, [from, to]) => made(exactly(Math.max(0, (to?.literal ?? size.max) - (from?.literal ?? 0))), 1)],
  ["lists.range", ({ literal }) => made(exactly(literal ?? most), 1)],
  ["reverse", ({ size }) => made(size, 1)],
  ["flatten", ({ size }, [depth]) => made(size, depth ? (depth.literal ?? most) : 1)],
  ["distinct", ({ size }) => made(productOf(size, size), 2)],
  ["sort", sort],
  ["sets.contains", sets(1)],
  ["sets.intersects", sets(1)],
  ["sets.equivalent", sets(2)],
]);

const nominal: Estimate = fixed(1);

/** Estimates a call, without the cost of its operands. */
export function callCost(name: string, [of, ...args]: readonly Operand[]): CallCost {
  return of ? (estimates.get(name) ?? nominal)(of, args) : { cost: 1 };
}
