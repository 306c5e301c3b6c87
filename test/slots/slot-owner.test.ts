import fc from "fast-check";
import { expect, test } from "vitest";
import { type Fate, fateOf } from "../lease/simulated-leases.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { SimulatedFleet, SimulatedReplica } from "./simulated-fleet.ts";

const slots = 8;
const runs = Number(process.env.RUNS ?? 30);
const prompt: Fate = { thereMs: 5, backMs: 5 };
/** Limit of the time after a crash: a term of 10 s, a renewal and a check before it, and the requests. Milliseconds. */
const takenWithinMs = 15_000;

const world = () => {
  const clock = new VirtualClock();
  const fleet = new SimulatedFleet(clock);
  return { clock, fleet, replica: (identity: string) => new SimulatedReplica(fleet, identity, slots) };
};

const counts = (...replicas: readonly SimulatedReplica[]) => replicas.map(({ believes }) => believes.length);

test("slots are even among replicas as these come and go, and no slot moves that need not", async () => {
  const { clock, replica } = world();
  const a = replica("a");
  await clock.advance(3_000);
  expect(counts(a)).toEqual([8]);
  const b = replica("b");
  await clock.advance(4_000);
  expect(counts(a, b)).toEqual([4, 4]);
  const had = [a.believes, b.believes];
  const c = replica("c");
  await clock.advance(4_000);
  expect(counts(a, b, c).toSorted()).toEqual([2, 3, 3]);
  expect([a, b].flatMap((each, index) => each.believes.filter((slot) => !had[index]?.includes(slot)))).toEqual([]);
  const kept = a.believes;
  void b.end();
  await clock.advance(4_000);
  expect(counts(a, b, c)).toEqual([4, 0, 4]);
  expect(a.believes).toEqual(expect.arrayContaining(kept));
});

test("a replica that is told to end hands each slot over within seconds, once its work has ended", async () => {
  const { clock, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  await clock.advance(5_000);
  a.drainMs = 3_000;
  void a.end();
  await clock.advance(2_500);
  expect(counts(a, b)).toEqual([4, 4]);
  await clock.advance(3_500);
  expect(counts(a, b)).toEqual([0, 8]);
});

test.each([2_000, 2_300, 2_600, 2_900])(
  "slots that are let go of after %d ms are with the next replica within 300 ms",
  async (drainMs) => {
    const { clock, replica } = world();
    const [a, b] = [replica("a"), replica("b")];
    await clock.advance(5_000);
    a.drainMs = drainMs;
    void a.end();
    await clock.advance(drainMs + 300);
    expect(counts(a, b)).toEqual([0, 8]);
  },
);

test("the slots of a replica that is killed are taken within 15 s", async () => {
  const { clock, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  await clock.advance(5_000);
  a.clock.stop(false);
  await clock.advance(takenWithinMs);
  expect(counts(b)).toEqual([8]);
});

test.each([1_000, 5_000, 9_000])(
  "they are taken within 15 s also where a replica comes %d ms after the kill, and has its share then",
  async (laterMs) => {
    const { clock, replica } = world();
    const [a, b] = [replica("a"), replica("b")];
    await clock.advance(5_000);
    a.clock.stop(false);
    await clock.advance(laterMs);
    const c = replica("c");
    await clock.advance(takenWithinMs - laterMs);
    expect(counts(b, c)).toEqual([4, 4]);
  },
);

test("a replica that was taken for dead writes nothing when it wakes up, and ends", async () => {
  const { clock, fleet, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  await clock.advance(5_000);
  a.clock.stop(false);
  await clock.advance(takenWithinMs);
  expect(fleet.lease("replica-a").object?.spec?.holderIdentity).toBe("");
  const before = fleet.lease("replica-a").object?.metadata.resourceVersion;
  a.clock.go(() => {});
  await clock.advance(5_000);
  expect([a.isOver, counts(a, b)]).toEqual([true, [0, 8]]);
  expect(fleet.lease("replica-a").object?.metadata.resourceVersion).toBe(before);
});

test("the next process of a pod takes at once what the one before it had", async () => {
  const { clock, replica } = world();
  const a = replica("a");
  await clock.advance(5_000);
  a.clock.stop(false);
  const next = replica("a");
  await clock.advance(2_000);
  expect(counts(next)).toEqual([8]);
});

test("the next process of a pod takes what the one before it had within 15 s, also where the pod's Lease was deleted", async () => {
  const { clock, fleet, replica } = world();
  for (const _ of [1, 2]) {
    const before = replica("a");
    await clock.advance(12_000);
    before.clock.stop(false);
  }
  const deleted = replica("a");
  await clock.advance(12_000);
  deleted.clock.stop(false);
  fleet.lease("replica-a").remove();
  await clock.advance(8_000);
  const next = replica("a");
  await clock.advance(takenWithinMs);
  expect(counts(deleted, next)).toEqual([0, 8]);
});

test("a replica that wakes up after its term believes in no slot, and ends", async () => {
  for (const asleep of [false, true]) {
    const { clock, replica } = world();
    const a = replica("a");
    await clock.advance(3_000);
    a.clock.stop(asleep);
    await clock.advance(30_000);
    let believed: number[] | undefined;
    a.clock.go(() => {
      believed = a.believes;
    });
    await clock.advance(100);
    expect([asleep, believed, a.isOver]).toEqual([asleep, [], true]);
  }
});

test("a slot that was let go of stays so, whatever a list says that was made before and comes after", async () => {
  const { clock, replica } = world();
  const a = replica("a");
  await clock.advance(3_000);
  a.drainMs = 1_500;
  // A list that is requested while slots drain is answered once others have acquired them.
  a.fate = () => (a.draining > 0 ? { thereMs: 5, backMs: 2_500 } : prompt);
  const b = replica("b");
  for (let step = 0; step < 80; step++) {
    await clock.advance(100);
    expect(a.believes.filter((slot) => b.believes.includes(slot))).toEqual([]);
  }
  expect([counts(a, b), a.isOver, b.isOver]).toEqual([[4, 4], false, false]);
});

test("a replica whose slot was given to another by hand ends at once", async () => {
  const { clock, fleet, replica } = world();
  const a = replica("a");
  await clock.advance(3_000);
  fleet.lease("slot-3").seize("somebody#1", 10);
  await clock.advance(1_500);
  expect([a.isOver, a.believes]).toEqual([true, []]);
});

test("a slot whose Lease is deleted stays with its replica, which makes the Lease again and keeps its other slots", async () => {
  const { clock, fleet, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  await clock.advance(5_000);
  const had = [a.believes, b.believes];
  for (let slot = 0; slot < slots; slot++) {
    const { holder } = fleet.lease(`slot-${slot}`);
    fleet.lease(`slot-${slot}`).remove();
    await clock.advance(2_000);
    expect([a.believes, b.believes, a.isOver, b.isOver]).toEqual([...had, false, false]);
    expect(fleet.lease(`slot-${slot}`).holder).toBe(holder);
  }
  void a.end();
  await clock.advance(4_000);
  expect(counts(a, b)).toEqual([0, 8]);
});

test("what a slot's Lease said is on it again once it was deleted and made again, also where it was let go of meanwhile", async () => {
  const { clock, fleet, replica } = world();
  const a = replica("a");
  await clock.advance(3_000);
  const [held] = a.held;
  await Promise.all([held?.annotate({ mark: "9" }), clock.advance(100)]);
  fleet.lease("slot-0").remove();
  await clock.advance(2_000);
  expect(fleet.lease("slot-0").object?.metadata.annotations).toEqual({ mark: "9" });
  void a.end();
  await clock.advance(100);
  fleet.lease("slot-0").remove();
  await clock.advance(1_000);
  expect(fleet.lease("slot-0").object?.metadata.annotations).toEqual({ mark: "9" });
  expect([fleet.lease("slot-0").holder, a.isOver]).toEqual(["", true]);
});

test("a slot whose Lease is deleted under a replica that is killed is taken by another within 15 s", async () => {
  const { clock, fleet, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  await clock.advance(5_000);
  fleet.lease(`slot-${a.believes[0]}`).remove();
  a.clock.stop(false);
  await clock.advance(takenWithinMs);
  expect(counts(b)).toEqual([8]);
});

test("a slot whose Lease is deleted stays with its replica also where another comes before that one looks", async () => {
  for (let laterMs = 0; laterMs < 1_000; laterMs += 100) {
    const { clock, fleet, replica } = world();
    const a = replica("a");
    await clock.advance(3_000);
    const b = replica("b");
    await clock.advance(laterMs);
    fleet.lease("slot-0").remove();
    for (let step = 0; step < 60; step++) {
      await clock.advance(100);
      expect(a.believes.filter((slot) => b.believes.includes(slot))).toEqual([]);
    }
    expect([counts(a, b), a.isOver, b.isOver]).toEqual([[4, 4], false, false]);
  }
});

test("the fence of a slot is that of its Lease, also where the answer is lost to the request that made this again", async () => {
  const { clock, fleet, replica } = world();
  const a = replica("a");
  await clock.advance(3_300);
  const [held] = a.held;
  const lease = fleet.lease(`slot-${held?.slot}`);
  lease.remove();
  held?.makeAgain();
  await clock.advance(15);
  a.fate = () => ({ ...prompt, accident: "answer lost" });
  await clock.advance(10);
  expect(lease.object).toBeDefined();
  a.fate = () => prompt;
  await clock.advance(5_000);
  expect([held?.fence.lease, a.isOver]).toEqual([lease.object?.metadata.uid, false]);
});

test.each(["another comes", "it is told to end"])(
  "a slot that is given away as %s stays until its work has ended, also where its Lease is deleted meanwhile",
  async (why) => {
    const { clock, fleet, replica } = world();
    const a = replica("a");
    await clock.advance(3_000);
    a.drainMs = 25_000;
    const b = replica("b");
    if (why === "it is told to end") void a.end();
    await clock.advance(3_000);
    for (let slot = 0; slot < slots; slot++) fleet.lease(`slot-${slot}`).remove();
    for (let step = 0; step < 300; step++) {
      expect(a.believes.filter((slot) => b.believes.includes(slot))).toEqual([]);
      await clock.advance(100);
    }
    expect(counts(a, b)).toEqual(why === "another comes" ? [4, 4] : [0, 8]);
    expect(b.isOver).toBe(false);
  },
);

test("a replica whose own Lease is deleted makes it again, and keeps its slots", async () => {
  const { clock, fleet, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  await clock.advance(5_000);
  const had = [a.believes, b.believes];
  for (let times = 0; times < 3; times++) {
    fleet.lease("replica-a").remove();
    for (let step = 0; step < 30; step++) {
      await clock.advance(100);
      expect([a.believes, b.believes, a.isOver, b.isOver]).toEqual([...had, false, false]);
    }
    expect(fleet.lease("replica-a").holder).toBe("a");
  }
  a.clock.stop(false);
  await clock.advance(takenWithinMs);
  expect(counts(b)).toEqual([8]);
});

test("all Leases of a fleet may be deleted at once: no replica ends, and no slot moves", async () => {
  const { clock, fleet, replica } = world();
  const [a, b, c] = [replica("a"), replica("b"), replica("c")];
  await clock.advance(8_000);
  const had = [a.believes, b.believes, c.believes];
  for (const lease of fleet.all.values()) lease.remove();
  for (let step = 0; step < 300; step++) {
    await clock.advance(100);
    expect([a.believes, b.believes, c.believes, a.isOver, b.isOver, c.isOver]).toEqual([...had, false, false, false]);
  }
  expect([...fleet.all.values()].every(({ holder }) => holder !== "")).toBe(true);
});

test("the Lease of a replica that is gone for ten minutes is taken away", async () => {
  const { clock, fleet, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  await clock.advance(5_000);
  a.clock.stop(false);
  await clock.advance(590_000);
  expect(fleet.lease("replica-a").object).toBeDefined();
  await clock.advance(30_000);
  expect([fleet.lease("replica-a").object, counts(b)]).toEqual([undefined, [8]]);
});

const stepOf = fc.record({
  process: fc.nat(3),
  what: fc.constantFrom(
    "good times",
    "bad times",
    "bad times",
    "stop",
    "sleep",
    "go",
    "end",
    "restart",
    "annotate",
    "delete a slot's Lease",
    "delete a replica's Lease",
    "slow",
  ),
  forMs: fc.oneof(fc.nat(3_000), fc.nat(15_000)),
});

test("no slot ever has two owners, and each has one soon after faults end", async () => {
  let moves = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(stepOf, { minLength: 8, maxLength: 25 }),
      fc.infiniteStream(fateOf),
      async (steps, fates) => {
        const { clock, fleet, replica } = world();
        const badTimes = () => fates.next().value;
        let count = 0;
        const fresh = () => replica(`p${count++}`);
        const all = [fresh(), fresh(), fresh(), fresh()];
        const last = new Map<number, SimulatedReplica>();
        const look = () => {
          const owners = new Map<number, SimulatedReplica>();
          for (const each of all) {
            for (const slot of each.believes) {
              expect(owners.has(slot), `slot ${slot} has two owners`).toBe(false);
              owners.set(slot, each);
              if (last.get(slot) !== each) moves++;
              last.set(slot, each);
            }
          }
          return owners;
        };
        const pass = async (ms: number) => {
          for (let left = ms; left > 0; left -= 100) {
            await clock.advance(Math.min(left, 100));
            look();
            // A process that has ended is replaced by that of another pod.
            all.forEach((each, index) => {
              if (each.isOver) all[index] = fresh();
            });
          }
        };
        for (const { process, what, forMs } of steps) {
          const it = all[process] ?? fresh();
          if (what === "good times") for (const each of all) each.fate = () => prompt;
          if (what === "bad times") it.fate = badTimes;
          if (what === "stop" || what === "sleep") it.clock.stop(what === "sleep");
          if (what === "go") for (const each of all) each.clock.go(look);
          if (what === "end") void it.end();
          if (what === "restart") {
            it.clock.stop(false);
            all[process] = fresh();
          }
          if (what === "delete a slot's Lease") fleet.lease(`slot-${forMs % slots}`).remove();
          if (what === "delete a replica's Lease") fleet.lease(`replica-p${forMs % count}`).remove();
          if (what === "annotate") fleet.lease(`slot-${forMs % slots}`).annotate("k", String(forMs));
          if (what === "slow") it.drainMs = forMs;
          await pass(forMs);
        }
        for (const each of all) {
          each.fate = () => prompt;
          each.drainMs = 200;
          each.clock.go(look);
        }
        // Lets pending work end: requests of half a minute, and drains of a quarter.
        await pass(45_000);
        await pass(takenWithinMs);
        const owners = look();
        expect(owners.size).toBe(slots);
        const each = [...Map.groupBy(owners.values(), (owner) => owner).values()].map((own) => own.length);
        expect(Math.max(...each) - Math.min(...each)).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: runs },
  );
  expect(moves).toBeGreaterThan(100);
}, 600_000);
