/**
 * Who has slots, in words, such as `slots 1, 4 are with b; slot 2 is with nobody yet`; undefined of none.
 * `here`: those that this replica has, be it that they open, or end. `owners`: by slot, as the Leases have them.
 */
export function whereabouts(
  slots: readonly number[],
  here: ReadonlyMap<number, unknown>,
  owners: readonly (string | undefined)[] = [],
): string | undefined {
  // A Lease's holder has the number of its term behind it.
  const nameOf = (slot: number) => owners[slot]?.replace(/#\d+$/, "") ?? "nobody yet";
  const ownerOf = (slot: number) => (here.has(slot) ? "this replica, which does not run it now" : nameOf(slot));
  const words = [...Map.groupBy(slots, ownerOf)].map(([owner, [first, ...more]]) =>
    more.length === 0 ? `slot ${first} is with ${owner}` : `slots ${[first, ...more].join(", ")} are with ${owner}`,
  );
  return words.length === 0 ? undefined : words.join("; ");
}
