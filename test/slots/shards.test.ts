import fc from "fast-check";
import { expect, test } from "vitest";
import { shardIn } from "../../runtime/engine/state/sharding.ts";
import { namespaceHash, slotOf, slotsOf } from "../../runtime/slots/rendezvous.ts";

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/);
const key = fc.tuple(fc.constantFrom("", "a", "team-b"), name).map(([namespace, own]) => `${namespace}/${own}`);
const slots = fc.integer({ min: 1, max: 64 });
const shards = fc.integer({ min: 1, max: 64 });
const by = fc.constantFrom("key" as const, "name" as const, "namespace" as const);

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
        const namespace = each.slice(0, each.indexOf("/"));
        for (const shard of found) {
          if (shard !== "whole" && shard.owns(each)) expect(shard.mayOwnIn(namespace)).toBe(true);
        }
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

/** The shards of a function with eight. */
const eight = (how: "key" | "name" | "namespace") =>
  slotsOf("hot", 8, 64).map((slot) => {
    const shard = shardIn(slot, "hot", { shards: 8, by: how }, 64);
    if (!shard || shard === "whole") throw new Error("it is no shard");
    return shard;
  });

test("keys are spread evenly, by their names alone where names say it", () => {
  for (const shard of eight("key")) {
    const own = Array.from({ length: 8_000 }, (_, n) => `team-${n % 7}/shop-${n}`).filter((each) => shard.owns(each));
    expect(own.length).toBeGreaterThan(850);
    expect(own.length).toBeLessThan(1_150);
  }
  for (const shard of eight("name")) expect(shard.owns("team-a/shop")).toBe(shard.owns("/shop"));
});

test("all objects of a namespace are in one shard, and namespaces that are numbered in all of them", () => {
  fc.assert(
    fc.property(fc.constantFrom("", "a", "team-b", "kube-system"), name, (namespace, own) => {
      for (const shard of eight("namespace")) {
        expect(shard.owns(`${namespace}/${own}`)).toBe(shard.mayOwnIn(namespace));
      }
    }),
  );
  const tenants = Array.from({ length: 800 }, (_, n) => `tenant-${n}`);
  for (const shard of eight("namespace")) {
    const own = tenants.filter((each) => shard.mayOwnIn(each));
    expect(own.length).toBeGreaterThan(70);
    expect(own.length).toBeLessThan(130);
  }
});

test("a namespace's hash is FNV-1a of 64 bits, which API servers know it by", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9-]{0,63}$/), (namespace) => {
      let expected = 0xcbf29ce484222325n;
      for (const byte of Buffer.from(namespace)) {
        expected = ((expected ^ BigInt(byte)) * 0x100000001b3n) & 0xffff_ffff_ffff_ffffn;
      }
      const { high, low } = namespaceHash(namespace);
      expect((BigInt(high) << 32n) | BigInt(low)).toBe(expected);
    }),
  );
});
