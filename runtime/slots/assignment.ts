import { drawn } from "./rendezvous.ts";

/**
 * Assigns each slot to a member. The counts differ by at most one. A slot stays with its live owner unless that one has too many,
 * so that the fewest possible slots move. All processes that see the same members and owners compute the same result.
 * @param members the live members, without duplicates, in any order
 * @param owners the owner of each slot; `undefined`, or a name not in `members`, if it is free
 * @returns a member for each slot; `undefined` for all if there are no members
 */
export function assignment(
  members: readonly string[],
  owners: readonly (string | undefined)[],
): readonly (string | undefined)[] {
  if (members.length === 0) return owners.map(() => undefined);
  const held = new Map<string, number[]>(members.map((member) => [member, []]));
  for (const [slot, owner] of owners.entries()) held.get(owner ?? "")?.push(slot);
  const count = (member: string) => held.get(member)?.length ?? 0;
  // If the counts cannot be equal, members with the most slots keep one more.
  const ordered = [...members].sort((a, b) => count(b) - count(a) || (a < b ? -1 : 1));
  const least = Math.floor(owners.length / members.length);
  const more = owners.length % members.length;
  const target: (string | undefined)[] = owners.map(() => undefined);
  const room = new Map<string, number>();
  for (const [place, member] of ordered.entries()) {
    const quota = place < more ? least + 1 : least;
    const slots = held.get(member) ?? [];
    const kept = slots.toSorted((a, b) => drawn(member, b) - drawn(member, a)).slice(0, quota);
    for (const slot of kept) target[slot] = member;
    if (kept.length < quota) room.set(member, quota - kept.length);
  }
  for (const [slot, kept] of target.entries()) {
    if (kept !== undefined) continue;
    const [taker, left] = [...room].reduce((a, b) => (drawn(b[0], slot) > drawn(a[0], slot) ? b : a));
    target[slot] = taker;
    if (left > 1) room.set(taker, left - 1);
    else room.delete(taker);
  }
  return target;
}
