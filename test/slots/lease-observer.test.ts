import { expect, test } from "vitest";
import { leaseMs } from "../../runtime/lease/elector.ts";
import { readLease } from "../../runtime/lease/lease-record.ts";
import { LeaseObserver, ownerOf, readyKey } from "../../runtime/slots/lease-observer.ts";

const names = {
  nameOfSlot: (slot: number) => `slot-${slot}`,
  nameOfMember: (identity: string) => `replica-${identity}`,
  isMember: (name: string) => name.startsWith("replica-"),
};

const lease = (name: string, holderIdentity: string, annotations: Record<string, string> = {}, seconds = 10) =>
  readLease({
    metadata: { name, uid: name, resourceVersion: "1", annotations },
    spec: { holderIdentity, leaseTransitions: 1, leaseDurationSeconds: seconds },
  });

/** One replica, which holds the only slot. */
const listed = new Map(
  [lease("replica-a", "a", { [readyKey]: "1" }), lease("slot-0", ownerOf("a", 1))].map((each) => [each.name, each]),
);

test("a replica's silence counts from when its last sign was heard of, up to when the last list was asked for", () => {
  const sightings = new LeaseObserver(names);
  const owner = ownerOf("a", 1);
  const look = (sentAt: number, heardAt: number) => {
    const { members, owners } = sightings.look(listed, 1, { sentAt, heardAt });
    return { members, owners };
  };
  const alive = { members: [owner], owners: [owner] };
  // It may have been renewed at any moment between the request and the answer.
  expect(look(0, 2_000)).toEqual(alive);
  expect(look(2_000 + leaseMs - 1, 2_000 + leaseMs + 2_500)).toEqual(alive);
  expect(look(2_000 + leaseMs, 2_000 + leaseMs + 10)).toEqual({ members: [], owners: [undefined] });
});

test("who had a replica's Lease before it was deleted and made again is dead once the new one was known for 10 s", () => {
  const sightings = new LeaseObserver(names);
  const owner = ownerOf("a", 3);
  const lived = new Map([...listed, ["slot-0", lease("slot-0", owner)]]);
  const ownerAt = (at: number) => sightings.look(lived, 1, { sentAt: at, heardAt: at }).owners[0];
  expect([ownerAt(0), ownerAt(leaseMs - 1), ownerAt(leaseMs)]).toEqual([owner, owner, undefined]);
});

test("a replica counts as dead after the longest duration of all replicas, and after two minutes at most", () => {
  const owner = ownerOf("a", 1);
  const ownerAfter = (seconds: number, ms: number) => {
    const sightings = new LeaseObserver(names);
    const long = lease("replica-b", "b", {}, seconds);
    const members = new Map([...listed, [long.name, long]]);
    sightings.look(members, 1, { sentAt: 0, heardAt: 0 });
    return sightings.look(members, 1, { sentAt: ms, heardAt: ms }).owners[0];
  };
  expect([ownerAfter(30, 29_999), ownerAfter(30, 30_000)]).toEqual([owner, undefined]);
  expect([ownerAfter(86_400, 119_999), ownerAfter(86_400, 120_000)]).toEqual([owner, undefined]);
});
