import fc from "fast-check";
import { expect, test } from "vitest";
import { shardIn } from "../../runtime/app/positions/spread.ts";
import { slotOf, slotsOf } from "../../runtime/fleet/rendezvous.ts";

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/);
const key = fc.tuple(fc.constantFrom("", "a", "team-b"), name).map(([namespace, own]) => `${namespace}/${own}`);
const slots = fc.integer({ min: 1, max: 64 });
const shards = fc.integer({ min: 1, max: 64 });
const by = fc.constantFrom("key" as const, "name" as const);

test("every key of a function is in exactly one of its shards, and stays there", () => {
  fc.assert(
    fc.property(name, fc.array(key, { maxLength: 20 }), shards, slots, by, (of, keys, count, all, how) => {
      const make = () =>
        Array.from({ length: all }, (_, slot) => shardIn(slot, of, { shards: count, by: how }, all)).filter(
          (shard) => shard !== undefined,
        );
      const [found, again] = [make(), make()];
      for (const each of keys) {
        const owners = (them: typeof found) =>
          them.flatMap((shard, index) => (shard === "whole" || shard.owns(each) ? [index] : []));
        expect(owners(found)).toHaveLength(1);
        expect(owners(again)).toEqual(owners(found));
      }
      if (count > 1) {
        expect(found.flatMap((shard) => (shard !== "whole" && shard.isFirst ? [shard] : []))).toHaveLength(1);
      }
    }),
    { numRuns: 60 },
  );
});

test("shards are in slots of their own, the first in the function's own slot, and another shard moves none", () => {
  fc.assert(
    fc.property(name, shards, slots, (of, count, all) => {
      const places = slotsOf(of, count, all);
      expect(places).toHaveLength(Math.min(count, all));
      expect(new Set(places).size).toBe(places.length);
      expect(places[0]).toBe(slotOf(of, all));
      expect(slotsOf(of, count + 1, all).slice(0, places.length)).toEqual(places);
    }),
    { numRuns: 60 },
  );
});

test("keys are spread evenly, by their names alone where names say it", () => {
  const spreadOf = (how: "key" | "name") =>
    slotsOf("hot", 8, 64).map((slot) => {
      const shard = shardIn(slot, "hot", { shards: 8, by: how }, 64);
      if (!shard || shard === "whole") throw new Error("it is no shard");
      return shard;
    });
  for (const shard of spreadOf("key")) {
    const own = Array.from({ length: 8_000 }, (_, n) => `team-${n % 7}/shop-${n}`).filter((each) => shard.owns(each));
    expect(own.length).toBeGreaterThan(850);
    expect(own.length).toBeLessThan(1_150);
  }
  for (const shard of spreadOf("name")) expect(shard.owns("team-a/shop")).toBe(shard.owns("/shop"));
});
