import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { change, DispatchFixture, failure, manifest, quiet } from "./fixture.ts";

const second = 1_000;
const debounced = (policy = {}) => manifest({ debounceMs: 2 * second, ...policy });
const open = async (policy = {}) => (await DispatchFixture.open({ manifest: debounced(policy) })).listed();

/** A change that arrives now. */
const now = (fixture: DispatchFixture, type: "Added" | "Modified", name: string, rv: number) =>
  fixture.subscription.change({ ...change(type, name, rv), receivedAt: fixture.clock.monotonic() });

async function pass(fixture: DispatchFixture, ms: number): Promise<void> {
  await quiet(fixture.runner);
  await fixture.clock.advance(ms);
  await quiet(fixture.runner);
}

describe("a debounced object", () => {
  it("runs once nothing of it changed for the quiet time, and other objects do not wait for it", async () => {
    const fixture = await open({ mode: "Latest" });
    now(fixture, "Added", "a", 11);
    await pass(fixture, second);
    now(fixture, "Added", "b", 12);
    await pass(fixture, second);
    expect(fixture.runner.told).toEqual(["Added a@11"]);
    now(fixture, "Modified", "a", 13);
    await pass(fixture, second);
    expect(fixture.runner.told).toEqual(["Added a@11", "Added b@12"]);
    for (const rv of [14, 15]) {
      now(fixture, "Modified", "a", rv);
      await pass(fixture, second);
    }
    expect(fixture.runner.told).toHaveLength(2);
    await pass(fixture, second);
    expect(fixture.runner.told).toEqual(["Added a@11", "Added b@12", "Modified a@15"]);
  });

  it("is told each of its changes in mode All, in order, when it is quiet", async () => {
    const fixture = await open();
    now(fixture, "Added", "a", 11);
    for (const rv of [12, 13]) {
      await pass(fixture, second);
      now(fixture, "Modified", "a", rv);
    }
    await pass(fixture, 2 * second - 1);
    expect(fixture.runner.told).toEqual([]);
    await pass(fixture, 1);
    expect(fixture.runner.told).toEqual(["Added a@11", "Modified a@12", "Modified a@13"]);
  });

  it.each([
    ["All", "Modified a@12"],
    ["Latest", "Modified a@31"],
  ] as const)("that changes on and on runs after ten times the quiet time, in mode %s", async (mode, first) => {
    const fixture = await open({ mode });
    now(fixture, "Added", "a", 11);
    await pass(fixture, 2 * second);
    for (let rv = 12; rv < 32; rv++) {
      now(fixture, "Modified", "a", rv);
      await pass(fixture, second - (rv === 31 ? 1 : 0));
    }
    expect(fixture.runner.told).toEqual(["Added a@11"]);
    await pass(fixture, 1);
    expect(fixture.runner.told[1]).toBe(first);
  });

  it("that changed while its handler ran waits from that change, however long the run took", async () => {
    const fixture = await open();
    fixture.runner.answer = () => undefined;
    now(fixture, "Added", "a", 11);
    await pass(fixture, 40 * second);
    now(fixture, "Modified", "a", 12);
    await pass(fixture, second);
    await fixture.runner.end("a");
    await pass(fixture, second - 1);
    expect(fixture.runner.told).toEqual(["Added a@11"]);
    await pass(fixture, 1);
    expect(fixture.runner.told).toEqual(["Added a@11", "Modified a@12"]);
  });

  it("that failed waits for its next attempt alone", async () => {
    const fixture = await open();
    fixture.runner.answer = () => failure();
    now(fixture, "Added", "a", 11);
    await pass(fixture, 2 * second);
    expect(fixture.runner.told).toEqual(["Added a@11"]);
    now(fixture, "Modified", "a", 12);
    await pass(fixture, second);
    expect(fixture.runner.told).toEqual(["Added a@11", "Added a@11 #2 !"]);
  });

  it("is not lost by a kill amid its quiet time: the position stays before it", async () => {
    const fixture = await open();
    now(fixture, "Added", "a", 11);
    await pass(fixture, second);
    const again = await fixture.restart({ manifest: debounced() });
    expect(Number(again.subscription.resumeFrom ?? 0)).toBeLessThan(11);
    now(again, "Added", "a", 11);
    await pass(again, 2 * second);
    expect(again.runner.told).toEqual(["Added a@11"]);
  });
});

it("whenever changes come, each object's last one runs within the quiet time after it, and none waits past the bound", async () => {
  const step = fc.record({ object: fc.nat(2), waitMs: fc.nat(5_000) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 40 }),
      fc.constantFrom("All", "Latest"),
      async (steps, mode) => {
        const fixture = await open({ mode });
        const began = new Map<string, number>();
        fixture.runner.answer = ({ object, resourceVersion }) => {
          began.set(`${object.name}@${resourceVersion}`, fixture.clock.monotonic());
          return { type: "ok", durationMs: 0 };
        };
        const came = new Map<string, { at: number; rv: number }>();
        const all: { id: string; at: number }[] = [];
        for (const [index, { object, waitMs }] of steps.entries()) {
          const name = `n${object}`;
          now(fixture, came.has(name) ? "Modified" : "Added", name, 11 + index);
          const at = fixture.clock.monotonic();
          came.set(name, { at, rv: 11 + index });
          all.push({ id: `${name}@${11 + index}`, at });
          await pass(fixture, waitMs);
        }
        await pass(fixture, 30 * second);
        for (const [name, { at, rv }] of came) {
          const ran = began.get(`${name}@${rv}`) ?? Number.NaN;
          expect(ran - at).toBeLessThanOrEqual(2 * second);
        }
        for (const { id, at } of all) {
          const ran = began.get(id);
          if (mode === "All") expect(ran).toBeDefined();
          if (ran !== undefined) expect(ran - at).toBeLessThanOrEqual(20 * second);
        }
      },
    ),
    { numRuns: 15 },
  );
});
