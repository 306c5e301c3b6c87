import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CircuitBreaker,
  type Involvement,
  involvementsOf,
  type Scene,
} from "../../runtime/sandbox/host/circuit-breaker.ts";

const minute = 60_000;
const charged: readonly Involvement[] = ["proven", "culprit"];
const reasons = ["memory", "silent", "breach", "stuck", "exited", "closed", "refused"] as const;

const scenes: fc.Arbitrary<Scene> = fc
  .record({
    reason: fc.constantFrom(...reasons),
    functionIds: fc.uniqueArray(fc.integer({ min: 1, max: 6 }), { minLength: 1 }),
    inside: fc.array(fc.record({ functionId: fc.integer({ min: 0, max: 5 }), ms: fc.nat(100), isOver: fc.boolean() }), {
      maxLength: 8,
    }),
    ran: fc.uniqueArray(fc.integer({ min: 1, max: 6 })),
    wasDoomed: fc.boolean(),
  })
  .map(({ functionIds, inside, ran, ...rest }) => {
    const entries = inside.map((entry) => ({
      ...entry,
      functionId: functionIds[entry.functionId % functionIds.length] ?? 0,
    }));
    return { ...rest, functionIds, inside: entries, ran: new Set(ran), blamed: undefined };
  });

/** Functions under the laws of the pool: each isolated function has its own executor, all others share one. */
class World {
  now = 0;
  sharedDeaths = 0;
  private lastExecutor = 0;
  readonly blames: readonly CircuitBreaker[];

  constructor(functions: number) {
    this.blames = Array.from({ length: functions }, () => new CircuitBreaker());
  }

  /** Kills the executor of the first function; `inside`: the other functions with running code there. */
  strike(reason: Scene["reason"], inside: readonly number[], isInside: boolean): void {
    const number = ++this.lastExecutor;
    const [killer] = this.blames;
    const isAlone = killer?.isAlone ?? false;
    const all = this.blames.map((_, id) => id);
    const functionIds = isAlone ? [0] : all.filter((id) => !this.blames[id]?.isAlone);
    if (!isAlone) this.sharedDeaths++;
    const names = [...(isInside ? [0] : []), ...inside.filter((id) => id !== 0 && functionIds.includes(id))];
    const scene: Scene = {
      reason,
      functionIds,
      ran: new Set(functionIds),
      inside: names.map((functionId) => ({ functionId, ms: 50, isOver: false })),
      blamed: undefined,
      wasDoomed: false,
    };
    const involvements = involvementsOf(scene);
    for (const [id, involvement] of involvements) this.blames[id]?.died(number, involvement, this.now);
    if (involvements.get(0) === "proven")
      for (const other of this.blames.slice(1)) for (const executor of killer?.cases ?? []) other.clear(executor);
  }
}

type Step =
  | { readonly strike: "memory" | "exited"; readonly inside: readonly number[]; readonly isInside: boolean }
  | { readonly waits: number }
  | { readonly events: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        strike: fc.constantFrom<"memory" | "exited">("memory", "exited"),
        inside: fc.uniqueArray(fc.integer({ min: 1, max: 4 })),
        isInside: fc.boolean(),
      }),
    },
    { weight: 2, arbitrary: fc.record({ waits: fc.integer({ min: 0, max: 90 * minute }) }) },
    { weight: 2, arbitrary: fc.record({ events: fc.nat(300) }) },
  ),
  { maxLength: 150 },
);

function live(world: World, schedule: readonly Step[]): void {
  for (const step of schedule) {
    if ("waits" in step) world.now += step.waits;
    else if ("events" in step)
      for (let event = 0; event < step.events; event++) for (const blame of world.blames) blame.finished(world.now);
    // By its own action, or by memory that it left behind. If it is not inside, no other function is the only one there.
    else if (step.strike === "memory" || step.isInside)
      world.strike(step.strike as "memory", step.inside, step.isInside);
  }
}

describe("whatever the schedule of deaths,", () => {
  it("nobody is charged with one that it was not inside alone, or did not have the executor of to itself", () => {
    fc.assert(
      fc.property(scenes, (scene) => {
        const guilty = [...involvementsOf(scene)]
          .filter(([, involvement]) => charged.includes(involvement))
          .map(([id]) => id);
        expect(guilty.length).toBeLessThanOrEqual(1);
        const over = scene.inside.filter(({ isOver }) => isOver);
        const long = scene.inside.filter(({ ms }) => ms >= 20);
        const suspects = over.length > 0 ? over : long.length > 0 ? long : scene.inside;
        for (const id of guilty) {
          const insideAlone = suspects.length > 0 && suspects.every(({ functionId }) => functionId === id);
          expect(insideAlone || scene.functionIds.length === 1).toBe(true);
          expect(involvementsOf(scene).get(id)).toBe(scene.functionIds.length === 1 ? "proven" : "culprit");
        }
        if (scene.reason === "closed" || scene.wasDoomed) expect(guilty).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });

  it("an innocent is never charged, and is never parked", () => {
    fc.assert(
      fc.property(steps, (schedule) => {
        const world = new World(5);
        live(world, schedule);
        expect(world.blames.slice(1).map((blame) => [blame.kills, blame.parkedMs(world.now)])).toEqual(
          Array(4).fill([0, 0]),
        );
      }),
    );
  });

  it("a killer costs the executors that others share at most 15, and at most 3 where it is seen inside", () => {
    fc.assert(
      fc.property(steps, (schedule) => {
        const world = new World(5);
        live(world, schedule);
        expect(world.sharedDeaths).toBeLessThanOrEqual(15);
        const seen = new World(5);
        // A patient attacker: it strikes when it is again among the others, if it ever is.
        const patience: Step[] = [{ waits: 61 * minute }, { events: 300 }];
        live(
          seen,
          schedule.flatMap((step) => ("strike" in step ? [{ ...step, isInside: true }, ...patience] : [step])),
        );
        expect(seen.sharedDeaths).toBeLessThanOrEqual(3);
      }),
    );
  });

  it("by whoever was suspected only together with a killer, no trace is left once that is proven", () => {
    const world = new World(3);
    for (let death = 0; death < 3; death++) {
      while (world.blames[0]?.isAlone) {
        world.now += 60 * minute;
        for (let event = 0; event < 200; event++) for (const blame of world.blames) blame.finished(world.now);
        if (world.blames[0]?.isForGood) break;
      }
      world.strike("memory", [1, 2], true);
    }
    world.strike("memory", [], true);
    expect(world.blames.map(({ kills }) => kills)).toEqual([1, 0, 0]);
    expect(world.blames.map(({ isAlone }) => isAlone)).toEqual([true, false, false]);
    expect(world.blames[1]?.isClean).toBe(true);
  });
});

describe("a function under suspicion", () => {
  it("is not among the others again by good behaviour alone, nor by time alone", () => {
    const [behaved, waited] = [new CircuitBreaker(), new CircuitBreaker()];
    for (const blame of [behaved, waited]) blame.died(1, "suspect", 0);
    for (let event = 0; event < 100_000; event++) behaved.finished(minute - 1);
    expect(behaved.isAlone).toBe(true);
    behaved.finished(minute);
    expect(behaved.isAlone).toBe(false);
    for (let event = 0; event < 19; event++) waited.finished(100 * minute);
    expect(waited.isAlone).toBe(true);
    waited.finished(100 * minute);
    expect(waited.isAlone).toBe(false);
  });

  it("comes under the same again with what was before: the third time is for good", () => {
    const blame = new CircuitBreaker();
    for (let death = 1; death <= 3; death++) {
      blame.died(death, "suspect", 0);
      expect(blame.isForGood).toBe(death === 3);
      for (let event = 0; event < 1000; event++) blame.finished(Number.MAX_SAFE_INTEGER);
    }
    expect(blame.isAlone).toBe(true);
  });
});

describe("a function that kills alone", () => {
  it("stands still for ever longer, to five minutes, and always comes back", () => {
    const blame = new CircuitBreaker();
    let now = 0;
    const parks: number[] = [];
    for (let death = 1; death <= 13; death++) {
      blame.died(death, "proven", now);
      parks.push(blame.parkedMs(now) / 1000);
      now += blame.parkedMs(now);
      expect(blame.parkedMs(now)).toBe(0);
    }
    expect(parks).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    expect(blame.kills).toBe(13);
  });

  it("is forgiven one death of the row for each ten minutes of calm", () => {
    const blame = new CircuitBreaker();
    for (let death = 1; death <= 4; death++) blame.died(death, "proven", 0);
    expect(blame.parkedMs(0)).toBe(4000);
    blame.died(5, "proven", 30 * minute);
    expect(blame.parkedMs(30 * minute)).toBe(1000);
  });
});

describe("a new version of a function's code", () => {
  it("begins with a clean slate", () => {
    const blame = new CircuitBreaker();
    for (let death = 1; death <= 4; death++) blame.died(death, "proven", 0);
    blame.renew(1000);
    expect([blame.kills, blame.isAlone, blame.parkedMs(1000), blame.isClean]).toEqual([0, false, 0, true]);
  });

  it("costs the shared executors no more by being deployed again and again: three slates, and three more an hour", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10 * minute), { minLength: 1, maxLength: 200 }), (pauses) => {
        const world = new World(3);
        let slates = 0;
        for (const ms of pauses) {
          world.now += ms;
          const [killer] = world.blames;
          const wasClean = killer?.isClean;
          killer?.renew(world.now);
          if (!wasClean && killer?.isClean) slates++;
          // Each version strikes until it is alone.
          for (let strike = 0; strike < 5; strike++) world.strike("exited", [], true);
        }
        const most = 3 + world.now / (20 * minute);
        expect(slates).toBeLessThanOrEqual(most);
        expect(world.sharedDeaths).toBeLessThanOrEqual(3 * (1 + most));
      }),
    );
  });
});
