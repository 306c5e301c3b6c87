/** Estimated number of characters, bytes, items or entries of a value. */
export interface Size {
  readonly min: number;
  readonly max: number;
}

/** Go's largest uint64, the maximum of an estimate. */
export const most = 2 ** 64;
export const unknownSize: Size = { min: 0, max: most };
export const exactly = (size: number): Size => ({ min: size, max: size });

export const times = (one: number, other: number): number =>
  one === 0 || other === 0 ? 0 : Math.min(most, one * other);
export const plus = (...costs: readonly number[]): number =>
  Math.min(
    most,
    costs.reduce((sum, cost) => sum + cost, 0),
  );

/** Returns a fraction of a size, rounded up: the cost of reading this many characters or items. */
export const share = ({ max }: Size, factor: number): number => Math.min(most, Math.ceil(max * factor));

export const union = (one: Size, other: Size): Size => ({
  min: Math.min(one.min, other.min),
  max: Math.max(one.max, other.max),
});
export const sumOf = (one: Size, other: Size): Size => ({
  min: plus(one.min, other.min),
  max: plus(one.max, other.max),
});
export const productOf = (one: Size, other: Size): Size => ({
  min: times(one.min, other.min),
  max: times(one.max, other.max),
});

/** Sizes of a list's or map's keys and values. */
export interface EntrySize {
  readonly isList: boolean;
  readonly key: Size;
  readonly value: Size;
}

export const unionOfEntries = (one?: EntrySize, other?: EntrySize): EntrySize | undefined =>
  one && other && { isList: one.isList, key: union(one.key, other.key), value: union(one.value, other.value) };
