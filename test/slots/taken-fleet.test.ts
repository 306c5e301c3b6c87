import fc from "fast-check";
import { expect, test } from "vitest";
import { TakenFleet } from "../../runtime/slots/taken-fleet.ts";
import { type Fate, ProcessClock } from "../lease/simulated-leases.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { SimulatedFleet, SimulatedReplica } from "./simulated-fleet.ts";

const slots = 4;
const prompt: Fate = { thereMs: 5, backMs: 5 };
const silent = { info: () => {}, warn: () => {} };

function world() {
  const clock = new VirtualClock();
  const fleet = new SimulatedFleet(clock);
  return { clock, fleet, replica: (identity: string) => new SimulatedReplica(fleet, identity, slots) };
}

/** A process that tries to acquire all slots, with what it reports of them. */
class Carrier {
  readonly clock: ProcessClock;
  readonly said: (string | undefined)[] = [];
  readonly warned: unknown[] = [];
  fate: () => Fate = () => prompt;
  taken: TakenFleet | undefined;
  private readonly stop = new AbortController();

  constructor(fleet: SimulatedFleet) {
    this.clock = new ProcessClock(fleet.network);
    const options = {
      leases: fleet.leases(this.clock, () => this.fate()),
      identity: "carrier",
      clock: this.clock,
      random: () => 0.5,
      log: { ...silent, warn: (fields: object) => void this.warned.push(...Object.values(fields)) },
      waiting: (why: string | undefined) => void this.said.push(why),
    };
    TakenFleet.take(options, slots, this.stop.signal).then(
      (taken) => {
        this.taken = taken;
      },
      () => {},
    );
  }

  /** The slots that it may work with now. */
  get believes(): number[] {
    if (this.clock.stopped) return [];
    return (this.taken?.slots ?? []).filter(({ holds }) => holds).map(({ slot }) => slot);
  }
}

test("all slots are taken once no replica lives: those that were told to end, and one that was killed, after its silence", async () => {
  const { clock, fleet, replica } = world();
  const [a, b] = [replica("a"), replica("b")];
  await clock.advance(5_000);
  const carrier = new Carrier(fleet);
  await clock.advance(5_000);
  expect(carrier.taken).toBeUndefined();
  expect(carrier.said.at(-1)).toBe(`replicas of a fleet of ${slots} slots still work: a, b`);
  expect(carrier.warned).toEqual([expect.stringMatching(/^WF_CHECKPOINT_AWAITED: .*still work: a, b;/)]);
  a.clock.stop(false);
  void b.end();
  await clock.advance(8_000);
  expect(carrier.taken).toBeUndefined();
  await clock.advance(7_000);
  expect(carrier.believes).toEqual([0, 1, 2, 3]);
  expect(carrier.said.at(-1)).toBeUndefined();
});

test("a replica that comes takes no slot while they are held, and all of them once they are let go of, or their holder is dead", async () => {
  for (const isKilled of [false, true]) {
    const { clock, fleet, replica } = world();
    const carrier = new Carrier(fleet);
    await clock.advance(3_000);
    expect(carrier.believes).toHaveLength(slots);
    const late = replica("late");
    await clock.advance(30_000);
    expect(late.believes).toEqual([]);
    if (isKilled) carrier.clock.stop(false);
    else void carrier.taken?.release();
    await clock.advance(15_000);
    expect(late.believes).toHaveLength(slots);
  }
});

test("a replica that comes has every slot in the end, also one that was taken before without an answer", async () => {
  const { clock, fleet, replica } = world();
  const carrier = new Carrier(fleet);
  let late: SimulatedReplica | undefined;
  carrier.fate = () => {
    if (late || fleet.lease("slot-0").holder === "") return prompt;
    late = replica("late");
    return { ...prompt, accident: "answer lost" };
  };
  await clock.advance(30_000);
  expect(late?.believes.toSorted()).toEqual([0, 1, 2, 3]);
});

test("a holder that was stopped for too long is told that nothing is its own any more", async () => {
  const { clock, fleet, replica } = world();
  const carrier = new Carrier(fleet);
  await clock.advance(3_000);
  const late = replica("late");
  carrier.clock.stop(true);
  await clock.advance(20_000);
  expect(late.believes).toHaveLength(slots);
  carrier.clock.go(() => expect(carrier.believes).toEqual([]));
  const confirmed = carrier.taken?.confirm().then(
    () => "confirmed",
    ({ code }) => code,
  );
  await clock.advance(5_000);
  expect(await confirmed).toBe("WF_LEASE_LOST");
});

test("no slot is ever with a replica and with who takes them all, whoever comes, ends, is killed or stopped", async () => {
  const step = fc.record({
    who: fc.constantFrom("a", "b", "carrier"),
    what: fc.constantFrom("start", "end", "kill", "stop", "go"),
    afterMs: fc.integer({ min: 100, max: 12_000 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 7 }), async (steps) => {
      const { clock, fleet, replica } = world();
      const replicas = new Map<string, SimulatedReplica>();
      let carrier: Carrier | undefined;
      const assertApart = () => {
        const all = [carrier, ...replicas.values()].flatMap((one) => one?.believes ?? []);
        expect(all.length).toBe(new Set(all).size);
      };
      for (const { who, what, afterMs } of steps) {
        const each = who === "carrier" ? carrier : replicas.get(who);
        if (what === "start" && !each) {
          if (who === "carrier") carrier = new Carrier(fleet);
          else replicas.set(who, replica(who));
        }
        if (what === "kill") each?.clock.stop(false);
        if (what === "stop") each?.clock.stop(true);
        if (what === "go") each?.clock.go(assertApart);
        if (what === "end" && each instanceof SimulatedReplica) void each.end();
        for (let passed = 0; passed < afterMs; passed += 500) {
          await clock.advance(500);
          assertApart();
        }
      }
    }),
    { numRuns: 25 },
  );
});
