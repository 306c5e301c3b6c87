import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import { Replica } from "../../runtime/reads/replica.ts";
import { VirtualClock } from "../virtual-clock.ts";

const at = (version: number) => resourceVersion(String(version));
const moment = (version: number, since: number) => ({ resourceVersion: at(version), since });

function change(type: Change["type"], name: string, version: number, more: object = {}): Change {
  const meta = { namespace: "team-a", name, uid: `uid-${name}`, resourceVersion: at(version) };
  return { type, meta, body: Buffer.from(JSON.stringify({ metadata: meta, ...more })), receivedAt: 0 };
}

const never = () => 0;

function replicaWith(
  names: readonly string[],
  version: number,
  clock = new VirtualClock(),
  rewinds: () => number = never,
): Replica {
  const replica = new Replica("r", clock, rewinds);
  const list = replica.list("initial");
  for (const name of names) list.item(change("Added", name, 1));
  list.end(at(version));
  return replica;
}

const namesOf = (replica: Replica) =>
  (replica.objects?.in(undefined) ?? []).flatMap((there) => [...there]).map(({ meta }) => meta.name);

it("a change that the list covers already changes nothing, as a deleted object would come back by it", () => {
  const replica = replicaWith(["a"], 10);
  replica.change(change("Modified", "gone", 9));
  expect(namesOf(replica)).toEqual(["a"]);
});

it("a list keeps the old objects until it is whole, and where it breaks off", () => {
  const replica = replicaWith(["a", "b"], 10);
  const broken = replica.list("relist");
  broken.item(change("Added", "c", 11));
  expect(namesOf(replica)).toEqual(["a", "b"]);
  broken.abort();
  const next = replica.list("relist");
  next.item(change("Added", "c", 11));
  expect(namesOf(replica)).toEqual(["a", "b"]);
  next.end(at(12));
  expect(namesOf(replica)).toEqual(["c"]);
});

it("a list takes memory for what is new in it alone, and gives it back where it breaks off", () => {
  const replica = replicaWith(["a", "b"], 10);
  const before = replica.bytes;
  const list = replica.list("relist");
  list.item(change("Added", "a", 1));
  expect(replica.bytes).toBe(before);
  list.item(change("Added", "c", 11));
  expect(replica.bytes).toBeGreaterThan(before);
  list.abort();
  expect(replica.bytes).toBe(before);
});

it("a list that lacks most of many objects is believed only when a second one says the same", () => {
  const names = Array.from({ length: 200 }, (_, index) => `o${index}`);
  const clock = new VirtualClock();
  const replica = replicaWith(names, 10, clock);
  expect(replica.list("relist").end(at(20))).toBe("held");
  expect(namesOf(replica)).toHaveLength(200);
  // The list of a kind whose definition was removed is empty, and valid.
  expect(replica.list("crd-removed").end(at(20))).toBe("counted");
  expect(namesOf(replica)).toEqual([]);
});

describe("after the cluster's state went back", () => {
  /** A replica at 100, after its own source or another source of the kind has detected a restore. */
  function undone() {
    let rewinds = 0;
    const replica = replicaWith(["a"], 100, new VirtualClock(), () => rewinds);
    rewinds++;
    return replica;
  }

  it("nothing is covered, whatever its resourceVersion, until a list has begun since", () => {
    const replica = undone();
    expect([moment(5, 0), moment(90, 0)].map((each) => replica.covers(each))).toEqual([false, false]);
    replica.list("rv-rewind").end(at(5));
    expect(replica.covers(moment(5, 0))).toBe(true);
  });

  it("a list that began before and ends later does not count", () => {
    let rewinds = 0;
    const replica = replicaWith(["a"], 100, new VirtualClock(), () => rewinds);
    const before = replica.list("relist");
    rewinds++;
    before.end(at(101));
    expect(replica.covers(moment(5, 0))).toBe(false);
  });

  it("an event of after it is compared with how far it has come since, not with how far it was before", () => {
    const replica = undone();
    replica.list("rv-rewind").end(at(5));
    expect(replica.covers(moment(60, 0))).toBe(false);
    replica.bookmark(at(60));
    expect(replica.covers(moment(60, 0))).toBe(true);
  });

  it("an event of before finds it new enough, though its object is back", () => {
    const replica = undone();
    const list = replica.list("rv-rewind");
    list.item(change("Added", "a", 1));
    list.end(at(5));
    const deleted = { namespace: "team-a", name: "a", uid: "uid-a" };
    expect(replica.at).toBe("5");
    expect(replica.covers({ ...moment(90, 0), past: true, deleted })).toBe(true);
  });
});

describe("a complete list proves that the cluster's state went back", () => {
  const provesAt = (list: number, item?: Change) => {
    const replica = replicaWith([], 10);
    replica.change(change("Modified", "a", 20));
    const next = replica.list("relist");
    if (item) next.item(item);
    return next.provesRewind?.(at(list));
  };

  it("where it is at or above all that is known and shows an older state of an object", () => {
    expect(provesAt(20, change("Added", "a", 15))).toBe(true);
    expect(provesAt(1_000_000_015, change("Added", "a", 15))).toBe(true);
  });

  it("where it shows an object that was not there, in a state of before", () => {
    expect(provesAt(1_000_000_015, change("Added", "b", 15))).toBe(true);
  });

  it("and not where it lags itself, shows the same state or a newer one, or lacks an object", () => {
    expect(provesAt(19, change("Added", "a", 15))).toBe(false);
    expect(provesAt(20, change("Added", "a", 20))).toBe(false);
    expect(provesAt(30, change("Added", "b", 25))).toBe(false);
    expect(provesAt(1_000_000_015)).toBe(false);
  });

  it("and not where its resourceVersion cannot be compared", () => {
    const replica = replicaWith([], 10);
    replica.change(change("Modified", "a", 20));
    const next = replica.list("relist");
    next.item(change("Added", "a", 15));
    expect(next.provesRewind?.(resourceVersion("opaque"))).toBe(false);
  });

  it("and not once it is known, so that the list which follows counts", () => {
    let rewinds = 0;
    const replica = replicaWith([], 100, new VirtualClock(), () => rewinds);
    rewinds++;
    const next = replica.list("initial");
    next.item(change("Added", "a", 15));
    expect(next.provesRewind?.(at(1_000_000_015))).toBe(false);
  });
});

it("and so it does once a list was made after it, of a replica that knows of no time before", async () => {
  const clock = new VirtualClock();
  const replica = replicaWith(["a"], 5, clock);
  const since = clock.monotonic();
  expect(replica.covers(moment(90, since))).toBe(false);
  await clock.advance(10);
  replica.list("initial").end(at(6));
  expect(replica.covers(moment(90, since))).toBe(true);
});

it("where resourceVersions have no order nobody waits for one", () => {
  const replica = replicaWith(["a"], 5);
  expect(replica.covers({ resourceVersion: resourceVersion("opaque"), since: 0 })).toBe(true);
});

it("says for how long the server has said nothing", async () => {
  const clock = new VirtualClock();
  const replica = replicaWith(["a"], 5, clock);
  await clock.advance(400);
  expect(replica.ageMs).toBe(400);
  replica.bookmark(at(6));
  expect(replica).toMatchObject({ ageMs: 0, at: "6" });
});

it("a kind that is not installed is empty, and keeps nobody waiting for a list", () => {
  const replica = new Replica("r", new VirtualClock(), never);
  expect(replica.objects).toBeUndefined();
  replica.kindIsMissing();
  expect(replica.objects?.size).toBe(0);
});
