import fc from "fast-check";
import { expect, test } from "vitest";
import { slotOf } from "../../runtime/slots/rendezvous.ts";
import { assignment } from "../../runtime/slots/slot-owner.ts";

const namesOf = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 9 });
const situationOf = fc.record({ members: namesOf, gone: namesOf, slots: fc.integer({ min: 1, max: 70 }) }).chain((it) =>
  fc.record({
    members: fc.constant(it.members),
    owners: fc.array(fc.constantFrom(undefined, ...it.members, ...it.gone), {
      minLength: it.slots,
      maxLength: it.slots,
    }),
  }),
);
const countsOf = (members: readonly string[], target: readonly (string | undefined)[]) =>
  members.map((member) => target.filter((each) => each === member).length);

test("each slot has one live member, and their counts are even within one", () => {
  fc.assert(
    fc.property(situationOf, ({ members, owners }) => {
      const target = assignment(members, owners);
      expect(target.length).toBe(owners.length);
      if (members.length === 0) {
        expect(new Set(target)).toEqual(new Set([undefined]));
        return;
      }
      const counts = countsOf(members, target);
      expect(counts.reduce((a, b) => a + b)).toBe(owners.length);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    }),
  );
});

test("no fewer slots can stay where they are", () => {
  fc.assert(
    fc.property(situationOf, ({ members, owners }) => {
      if (members.length === 0) return;
      const target = assignment(members, owners);
      const stay = target.filter((member, slot) => member === owners[slot]).length;
      const least = Math.floor(owners.length / members.length);
      const held = countsOf(members, owners);
      const over = held.filter((count) => count > least).length;
      const most =
        held.reduce((sum, count) => sum + Math.min(count, least), 0) + Math.min(owners.length % members.length, over);
      expect(stay).toBe(most);
    }),
  );
});

test("all who see the same agree, in whatever order they see it, and what is so stays so", () => {
  fc.assert(
    fc.property(situationOf, ({ members, owners }) => {
      const target = assignment(members, owners);
      expect(assignment(members.toReversed(), owners)).toEqual(target);
      expect(assignment(members, target)).toEqual(target);
    }),
  );
});

test("a slot on its way comes back to nobody who had too many", () => {
  fc.assert(
    fc.property(situationOf, fc.nat(), ({ members, owners }, which) => {
      const target = assignment(members, owners);
      const moving = owners.flatMap((owner, slot) =>
        owner !== undefined && members.includes(owner) && target[slot] !== owner ? [slot] : [],
      );
      const slot = moving[which % Math.max(1, moving.length)];
      if (slot === undefined) return;
      const after = assignment(members, owners.with(slot, undefined));
      expect(after[slot]).not.toBe(owners[slot]);
      const moved = (to: readonly (string | undefined)[]) =>
        owners.filter((owner, at) => at !== slot && members.includes(owner ?? "") && to[at] !== owner).length;
      expect(moved(after)).toBe(moved(target));
    }),
  );
});

test("64 slots take functions about evenly, and a function keeps its slot as long as their number stays", () => {
  const counts = new Map<number, number>();
  for (let n = 0; n < 6_400; n++) {
    const slot = slotOf(`function-${n}`, 64);
    counts.set(slot, (counts.get(slot) ?? 0) + 1);
  }
  expect(counts.size).toBe(64);
  expect(Math.max(...counts.values())).toBeLessThan(150);
  // Recorded values: a change of the hash would assign every function's checkpoints to another slot.
  expect(["greet", "copy-labels", "a"].map((name) => slotOf(name, 64))).toEqual([18, 52, 10]);
});
