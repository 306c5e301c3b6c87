import { expect, test } from "vitest";
import type { FunctionOffer, FunctionSet } from "../../../runtime/catalog/function-source.ts";
import { Catalogue, type ShardingLookup } from "../../../runtime/host/fleet/catalogue.ts";
import { Shardings } from "../../../runtime/host/fleet/shardings.ts";
import type { LeaseApi } from "../../../runtime/lease/lease-api.ts";
import { changedLease, readLease } from "../../../runtime/lease/lease-record.ts";
import type { DeliverySettings } from "../../../runtime/manifest/function.ts";
import { slotsOf } from "../../../runtime/slots/rendezvous.ts";
import { manifest } from "../../engine/fixture.ts";

const slots = 16;
const places = slotsOf("copy", 4, slots);
const nothing: ShardingLookup = async () => undefined;
const { signal } = new AbortController();
const silent = { info: () => {}, warn: () => {} };

/** The runtime's Lease. A write is refused if another one came first. */
function runtimeLease(): LeaseApi & { conflicts: number; isAway: boolean } {
  let lease = readLease({ metadata: { name: "watchfire", uid: "1", resourceVersion: "1" } });
  const api = {
    conflicts: 0,
    isAway: false,
    get: async () => {
      if (api.isAway) throw new Error("away");
      return lease;
    },
    create: async () => "conflict" as const,
    update: async (record: typeof lease, change: Parameters<LeaseApi["update"]>[1]) => {
      if (api.conflicts-- > 0) return "conflict" as const;
      if (record.resourceVersion !== lease.resourceVersion) return "conflict" as const;
      const resourceVersion = String(Number(lease.resourceVersion) + 1);
      const { metadata, ...rest } = changedLease(record.object, change) as { metadata: object };
      lease = readLease({ ...rest, metadata: { ...metadata, resourceVersion } });
      return lease;
    },
  };
  return api;
}

/** The function `copy`, or another one in its file. */
const offerOf = (delivery: Partial<DeliverySettings>, name = "copy"): FunctionOffer => ({
  manifest: { ...manifest(delivery), name },
  origin: { type: "folder", manifest: "functions/copy/function.yaml" },
  bundle: () => Promise.reject(new Error("not asked for")),
});

async function replica(
  api: LeaseApi,
  shards: number,
  over: Partial<FunctionSet> = {},
  delivery: Partial<DeliverySettings> = {},
) {
  const offer = offerOf(shards > 1 ? { shards, ...delivery } : {});
  const set: FunctionSet = { functions: [offer], rejected: [], faults: [], complete: true, ...over };
  const shardings = new Shardings(api, silent);
  await shardings.read();
  const catalogue = new Catalogue({ read: async () => set }, slots, shardings);
  await catalogue.read(signal);
  const has = async (recorded = nothing) => {
    // The first slot reports before the others read.
    await catalogue.of(places[0] ?? -1, recorded).read(signal);
    const found: number[] = [];
    for (let slot = 0; slot < slots; slot++) {
      const { functions } = await catalogue.of(slot, recorded).read(signal);
      if (functions.length > 0) found.push(slot);
    }
    return found;
  };
  return { catalogue, shardings, has };
}

const sorted = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b);

test("a function is in the slots of its shards, once its first slot has said so", async () => {
  const { catalogue } = await replica(runtimeLease(), 4);
  const read = (slot: number | undefined) => catalogue.of(slot ?? -1, nothing).read(signal);
  expect(await read(places[1])).toMatchObject({ functions: [], withheld: ["copy"] });
  const first = await read(places[0]);
  expect(first.functions).toMatchObject([{ shard: { number: 0, isFirst: true, sharding: "4 by key" } }]);
  const second = await read(places[1]);
  expect(second.functions).toMatchObject([{ shard: { number: 1, isFirst: false } }]);
  expect(second.withheld).toEqual([]);
});

test("all replicas spread it alike, whoever comes first", async () => {
  const api = runtimeLease();
  const [one, other] = [await replica(api, 4), await replica(api, 8)];
  api.conflicts = 1;
  expect(await one.has()).toEqual(sorted(places));
  expect(await other.has()).toEqual(sorted(places));
});

test("another number of shards is refused by its code, and it runs in those that have its positions", async () => {
  const api = runtimeLease();
  await (await replica(api, 4)).has();
  for (const shards of [1, 2, 8]) {
    const later = await replica(api, shards);
    expect(await later.has()).toEqual(sorted(places));
    const { functions } = await later.catalogue.of(places[0] ?? -1, nothing).read(signal);
    expect(functions[0]?.refused).toMatchObject({ code: "WF_LEASE_SHARDS" });
    expect(functions[0]?.refused?.message).toContain("4 shards");
  }
});

const byNamespace = { shardBy: "Namespace" } as const;
const reconciles = { mode: "Reconcile" } as const;

test.each<[string, Partial<DeliverySettings>, string, Partial<DeliverySettings>, string]>([
  ["by namespace", {}, "4 by key", byNamespace, "spec.delivery.shardBy: .*Namespace"],
  ["by key", byNamespace, "4 by namespace", {}, "spec.delivery.shardBy: .*Key"],
  ["by name, as mode Reconcile needs it,", {}, "4 by key", reconciles, "spec.delivery.mode: .*Reconcile"],
])(
  "a function whose keys are to be spread %s is refused by its code, and runs in the shards that have its positions",
  async (_, first, spread, then, message) => {
    const api = runtimeLease();
    const { has } = await replica(api, 4, {}, first);
    expect(await has()).toEqual(sorted(places));
    const { catalogue } = await replica(api, 4, {}, then);
    const { functions } = await catalogue.of(places[0] ?? -1, nothing).read(signal);
    expect(functions[0]?.refused).toMatchObject({ code: "WF_LEASE_SHARDS" });
    expect(functions[0]?.refused?.message).toMatch(new RegExp(message));
    expect(functions[0]?.refused?.message).toContain(`4 shards, ${spread.slice(2)}`);
    const { functions: same } = await (await replica(api, 4, {}, first)).catalogue
      .of(places[0] ?? -1, nothing)
      .read(signal);
    expect(same[0]?.refused).toBeUndefined();
    expect(same[0]?.shard?.sharding).toBe(spread);
  },
);

test("a function that leaves mode Reconcile keeps its shards: by name, each object is in one as well", async () => {
  const api = runtimeLease();
  await (await replica(api, 4, {}, reconciles)).has();
  const { catalogue } = await replica(api, 4);
  const { functions } = await catalogue.of(places[0] ?? -1, nothing).read(signal);
  expect(functions[0]?.refused).toBeUndefined();
  expect(functions[0]?.shard?.sharding).toBe("4 by name");
});

test("a function that has positions in one slot stays there whole, whatever its manifest says later", async () => {
  const { has, catalogue } = await replica(runtimeLease(), 4);
  const recorded: ShardingLookup = async () => ({ shards: 1, by: "key" });
  expect(await has(recorded)).toEqual([places[0]]);
  const { functions } = await catalogue.of(places[0] ?? -1, recorded).read(signal);
  expect(functions[0]?.shard).toBeUndefined();
  expect(functions[0]?.refused?.code).toBe("WF_LEASE_SHARDS");
});

test("what a newer replica agreed on in words that this one cannot read is refused by its code, and nobody writes over it", async () => {
  const api = runtimeLease();
  const note = JSON.stringify({ copy: "4 by rainbow" });
  const lease = await api.get(0);
  if (lease) await api.update(lease, { annotations: { "watchfire.dev/shards": note } }, 0);
  const shardings = new Shardings(api, silent);
  const refusal = { code: "WF_CHECKPOINT_NEWER_SCHEMA", message: expect.stringContaining("4 by rainbow") };
  await expect(shardings.read()).rejects.toMatchObject(refusal);
  for (const name of ["copy", "other"])
    await expect(shardings.propose(name, { shards: 2, by: "key" })).rejects.toMatchObject(refusal);
  expect((await api.get(0))?.annotations["watchfire.dev/shards"]).toBe(note);
});

test("it waits for an API server that is away, and its positions stay everywhere meanwhile", async () => {
  const api = runtimeLease();
  const { has, catalogue } = await replica(api, 4);
  api.isAway = true;
  expect(await has()).toEqual([]);
  expect((await catalogue.of(places[2] ?? -1, nothing).read(signal)).withheld).toEqual(["copy"]);
  api.isAway = false;
  expect(await has()).toHaveLength(4);
});

test("a manifest that is refused takes no shard's positions away", async () => {
  const rejected = [{ name: "copy", file: "f", faults: [], origin: { type: "folder", manifest: "f" } }] as const;
  const { catalogue } = await replica(runtimeLease(), 4, { functions: [], rejected });
  for (const slot of places) {
    const { rejected: told, withheld = [] } = await catalogue.of(slot, nothing).read(signal);
    expect([...told.map(({ name }) => name), ...withheld]).toContain("copy");
  }
});

test("a function goes on in its slots while its file declares another one instead that is refused, and ends once it is left out", async () => {
  const origin = { type: "folder", manifest: "f" } as const;
  const offer = offerOf({});
  const other = { name: "other", file: offer.manifest.file, faults: [], origin };
  let set: FunctionSet = { functions: [offer], rejected: [], faults: [], complete: true };
  const shardings = new Shardings(runtimeLease(), silent);
  const catalogue = new Catalogue({ read: async () => set }, slots, shardings);
  const [place = -1] = places;
  const here = async () => {
    await catalogue.read(signal);
    const { functions, withheld = [] } = await catalogue.of(place, nothing).read(signal);
    return [...functions.map(({ manifest }) => manifest.name), ...withheld].includes("copy");
  };
  expect(await here()).toBe(true);
  set = { ...set, functions: [], rejected: [{ ...other, name: "copy" }] };
  await catalogue.read(signal);
  set = { ...set, rejected: [other] };
  expect([await here(), await here(), catalogue.names.includes("copy")]).toEqual([true, true, true]);
  // A function that is removed from a file is removed, even if another part of the file is invalid.
  set = { ...set, functions: [offerOf({}, "other"), offer], rejected: [] };
  expect(await here()).toBe(true);
  set = { ...set, functions: [], rejected: [other] };
  expect([await here(), catalogue.names.includes("copy")]).toEqual([false, false]);
});

test("a spread that the Lease does not take is told of with a code, once in the log and for as long as that is so", async () => {
  const lease = runtimeLease();
  const told: string[] = [];
  const tell = (fields: object, message: string) => void told.push(`${message} ${JSON.stringify(fields)}`);
  let why = "annotations: Too long";
  const update: LeaseApi["update"] = (...of) => (why ? Promise.reject(new Error(why)) : lease.update(...of));
  const shardings = new Shardings({ ...lease, update }, { info: tell, warn: tell });
  const propose = () => shardings.propose("copy", { shards: 4, by: "key" }).catch(() => undefined);
  for (let tries = 0; tries < 2; tries++) await propose();
  expect([shardings.unwritten, told]).toEqual([undefined, []]);
  for (let tries = 0; tries < 20; tries++) await propose();
  expect(shardings.unwritten?.message).toMatch(/^WF_LEASE_UNWRITTEN: .*Too long/);
  expect(told).toEqual([`lease not written ${JSON.stringify({ error: shardings.unwritten?.message })}`]);
  why = "";
  await propose();
  expect([shardings.unwritten, shardings.of("copy")?.shards]).toEqual([undefined, 4]);
});
