import { drawn } from "./rendezvous.ts";

/**
 * Which member is to have each slot. Counts are even within one. A slot stays with the live member that has it unless
 * that one has too many: no fewer can move. All who see the same members and owners come to the same answer.
 * @param members those that live, without repetition, in any order
 * @param owners of each slot; undefined, or nobody of `members`, where it is free
 * @returns a member for each slot; undefined for all where there is no member
 */
export function assignment(
  members: readonly string[],
  owners: readonly (string | undefined)[],
): readonly (string | undefined)[] {
  if (members.length === 0) return owners.map(() => undefined);
  const held = new Map<string, number[]>(members.map((member) => [member, []]));
  for (const [slot, owner] of owners.entries()) held.get(owner ?? "")?.push(slot);
  const count = (member: string) => held.get(member)?.length ?? 0;
  // Those that have most keep one more, where it does not come out even.
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
