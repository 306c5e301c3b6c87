import fc from "fast-check";
import { expect, it } from "vitest";
import { planFairly } from "../../runtime/reads/cache-budget.ts";

const limit = 100;
const bytes = fc.integer({ min: 0, max: 130 });
const holderOf = (demand: Readonly<Record<string, number>>) => ({ demand: new Map(Object.entries(demand)) });
/** Functions with one separate source each. */
const apart = fc
  .array(bytes, { minLength: 1, maxLength: 8 })
  .map((sizes) => sizes.map((size, index) => holderOf({ [`s${index}`]: size })));
/** Up to five sources, and the functions that read each of them. */
const sharing = fc
  .array(bytes, { minLength: 1, maxLength: 5 })
  .chain((sizes) =>
    fc
      .array(fc.subarray([...sizes.keys()], { minLength: 1 }), { minLength: 1, maxLength: 8 })
      .map((readers) =>
        readers.map((of) => holderOf(Object.fromEntries(of.map((index) => [`s${index}`, sizes[index] ?? 0])))),
      ),
  );

type Holders = Iterable<ReturnType<typeof holderOf>>;
const sum = (holders: Holders) => {
  const all = new Map([...holders].flatMap(({ demand }) => [...demand]));
  return [...all.values()].reduce((total, size) => total + size, 0);
};
const eachPlan = (check: (holders: ReturnType<typeof holderOf>[], kept: Set<ReturnType<typeof holderOf>>) => void) =>
  fc.assert(fc.property(fc.oneof(apart, sharing), (holders) => check(holders, planFairly(holders, limit))));

it("what is kept fits, a source that several read counted once", () => {
  eachPlan((_, kept) => {
    expect(sum(kept)).toBeLessThanOrEqual(limit);
  });
});

it("nobody whose demand is an equal share or less is left out", () => {
  eachPlan((holders, kept) => {
    for (const holder of holders) if (sum([holder]) <= limit / holders.length) expect(kept).toContain(holder);
  });
});

it("nobody is left out who would fit", () => {
  eachPlan((holders, kept) => {
    for (const holder of holders) if (!kept.has(holder)) expect(sum([...kept, holder])).toBeGreaterThan(limit);
  });
});

it("nobody is left out for one who has more, where no source is shared", () => {
  fc.assert(
    fc.property(apart, (holders) => {
      const kept = planFairly(holders, limit);
      const least = Math.min(...holders.filter((holder) => !kept.has(holder)).map((holder) => sum([holder])));
      for (const holder of kept) expect(sum([holder])).toBeLessThanOrEqual(least);
    }),
  );
});

it("readers of one source pay equal parts of it: ten who share most of the room stay, and one with more than any part goes", () => {
  const readers = Array.from({ length: 10 }, () => holderOf({ shared: 90 }));
  const lone = holderOf({ own: 20 });
  expect([...planFairly([lone, ...readers], limit)]).toEqual(readers);
});

it("of two with the same demand the later in order gives way", () => {
  const [first, second] = [holderOf({ a: 60 }), holderOf({ b: 60 })];
  expect([...planFairly([first, second], limit)]).toEqual([first]);
});

it("who was left out for what others had is kept after all once these are left out as well", () => {
  const sharers = Array.from({ length: 9 }, () => holderOf({ shared: 60 }));
  const [partly, lone, small] = [holderOf({ shared: 60, own: 30 }), holderOf({ lone: 35 }), holderOf({ small: 10 })];
  const kept = planFairly([partly, lone, small, ...sharers], limit);
  expect([kept.has(partly), kept.has(lone), kept.has(small), sum(kept)]).toEqual([true, false, true, 100]);
});
