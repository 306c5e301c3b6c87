import { expect, test } from "vitest";
import { type Sharding, whole } from "../../../runtime/engine/state/sharding.ts";
import { KeptLease } from "../../../runtime/host/fleet/kept-lease.ts";
import { Shardings } from "../../../runtime/host/fleet/shardings.ts";
import type { LeaseApi } from "../../../runtime/lease/lease-api.ts";
import { changedLease, type LeaseChange, type LeaseRecord, readLease } from "../../../runtime/lease/lease-record.ts";
import { annotationsOf, type JournalLocation, readPlace, shardingsNote } from "../../../runtime/migrate/location.ts";

const place: JournalLocation = { where: "fleet/8", slots: 8, set: "abc-3", carried: { 0: "7 streams" } };
const wide: Sharding = { shards: 4, by: "key" };
const silent = { info: () => {}, warn: () => {} };

interface Server extends LeaseApi {
  lease: LeaseRecord | undefined;
  writes: number;
}

/** One Lease on an API server; `lease` is its content. */
function server(annotations?: Readonly<Record<string, string>>): Server {
  let version = 0;
  const put = (object: { metadata: object }, change: LeaseChange): LeaseRecord => {
    const { metadata, ...rest } = changedLease(object, change) as { metadata: object };
    const lease = readLease({ ...rest, metadata: { ...metadata, resourceVersion: String(++version) } });
    api.lease = lease;
    return lease;
  };
  const created = { metadata: { name: "watchfire", uid: "u" } };
  const api: Server = {
    lease: undefined,
    writes: 0,
    get: async () => api.lease,
    create: async (change: LeaseChange) => {
      api.writes++;
      return api.lease ? ("conflict" as const) : put(created, change);
    },
    update: async (record: LeaseRecord, change: LeaseChange) => {
      api.writes++;
      return record.resourceVersion === api.lease?.resourceVersion ? put(record.object, change) : ("conflict" as const);
    },
  };
  if (annotations) put(created, { annotations });
  return api;
}

const replica = (api: LeaseApi, shardings: ReadonlyMap<string, Sharding> = new Map([["copy", wide]])) =>
  new KeptLease(api, () => ({ place, shardings }), silent);

test("a runtime's Lease that was deleted, or lost what it says, is written again by whoever reads it at work", async () => {
  for (const api of [server(), server({ "example.com/other": "1" })]) {
    const lease = replica(api);
    expect(await readPlace(lease)).toEqual(place);
    expect(api.lease?.annotations).toMatchObject({
      ...annotationsOf(place),
      ...shardingsNote(new Map([["copy", wide]])),
    });
    expect([await readPlace(lease), api.writes]).toEqual([place, 1]);
  }
});

test("replicas that know of different functions write what each knows, and none forgets its own", async () => {
  const api = server();
  const shardings = new Shardings(replica(api, new Map()), silent);
  await shardings.propose("label", wide);
  const other = new Shardings(replica(api), silent);
  await other.read();
  await shardings.read();
  for (const each of [shardings, other]) expect([each.of("copy"), each.of("label")]).toEqual([wide, wide]);
  // A sharding that was agreed does not change any more.
  await new Shardings(replica(api, new Map([["label", whole]])), silent).read();
  await shardings.read();
  expect(shardings.of("label")).toEqual(wide);
});

test("a Lease that says another place or set stays as it is, and one that a replica reads which is not at work", async () => {
  for (const other of [
    { ...place, where: "nats" },
    { ...place, set: "abc-4" },
  ]) {
    const api = server(annotationsOf(other));
    expect(await readPlace(replica(api))).toMatchObject({ where: other.where, set: other.set });
    expect(api.writes).toBe(0);
  }
  const api = server();
  expect(await new KeptLease(api, () => undefined, silent).get(1)).toBeUndefined();
  expect(api.writes).toBe(0);
});
