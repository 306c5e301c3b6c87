import { expect, test } from "vitest";
import { Reloads } from "../../../runtime/host/fleet/reloads.ts";
import { createLog } from "../../../runtime/observe/log.ts";
import { VirtualClock } from "../../virtual-clock.ts";

/** Reloads of one slot, with everything that decides their outcome under the test's control. */
function world() {
  const clock = new VirtualClock();
  const stopping = new AbortController();
  const lines: string[] = [];
  const steps: string[] = [];
  const state = {
    /** Awaited by each reading of the functions. */
    reading: Promise.resolve(),
    unsettled: [] as string[],
    agreed: 0,
    /** The reason why a slot cannot load what was read. */
    fault: undefined as Error | undefined,
    slots: 1,
    /** True if the first slot of all functions is stopped. */
    stuck: false,
  };
  const reloads = new Reloads({
    catalogue: {
      read: async () => {
        steps.push("read");
        await state.reading;
        steps.push("has read");
      },
      get unsettled() {
        return state.unsettled;
      },
    },
    shardings: {
      read: async () => {},
      get size() {
        return state.agreed;
      },
    },
    runs: () =>
      Array.from({ length: state.slots }, () => ({
        reload: async () => {
          steps.push("reload");
          if (state.fault) throw state.fault;
        },
      })),
    isHere: () => true,
    isStuck: () => state.stuck,
    clock,
    log: createLog("error", { write: (line: string) => void lines.push(line) }),
  });
  return { clock, signal: stopping.signal, stopping, lines, steps, state, reloads };
}

test("the first reading waits for one that a change began before it", async () => {
  const { reloads, state, steps, signal } = world();
  const held = Promise.withResolvers<void>();
  state.reading = held.promise;
  const changed = reloads.again(signal);
  const first = reloads.first(signal, () => {});
  held.resolve();
  await Promise.all([changed, first]);
  expect(steps).toEqual(["read", "has read", "reload", "read", "has read"]);
});

test("a reading that fails keeps none of those after it from being made", async () => {
  const { reloads, state, steps, signal } = world();
  state.reading = Promise.reject(new Error("the folder is gone"));
  await reloads.again(signal);
  state.reading = Promise.resolve();
  await reloads.first(signal, () => {});
  expect(steps).toEqual(["read", "read", "has read"]);
});

test("a slot that fails to take up what was agreed is read again until it has, and that is told once", async () => {
  const { reloads, state, steps, signal, stopping, clock, lines } = world();
  await reloads.first(signal, () => {});
  const agreeing = reloads.agree(signal);
  state.agreed = 1;
  state.fault = new Error("the store is away");
  await clock.advance(2_000);
  expect(reloads.isAgreed).toBe(false);
  expect(steps.filter((step) => step === "reload").length).toBeGreaterThan(1);
  state.fault = undefined;
  await clock.advance(1_000);
  expect(reloads.isAgreed).toBe(true);
  expect(lines.filter((line) => line.includes("the store is away"))).toHaveLength(1);
  stopping.abort();
  await clock.advance(1_000);
  await agreeing;
});

test("a change that a slot failed to take up is read again until it has, now and then, and that is told once", async () => {
  const { reloads, state, steps, signal, stopping, clock, lines } = world();
  await reloads.first(signal, () => {});
  const agreeing = reloads.agree(signal);
  state.fault = new Error("the store is away");
  await reloads.again(signal);
  await clock.advance(20_000);
  const tries = steps.filter((step) => step === "reload").length;
  expect(tries).toBeGreaterThan(2);
  expect(tries).toBeLessThan(7);
  state.fault = undefined;
  await clock.advance(6_000);
  const before = steps.length;
  await clock.advance(20_000);
  expect([steps.length, steps.at(-1)]).toEqual([before, "reload"]);
  expect(lines.filter((line) => line.includes("the store is away"))).toHaveLength(1);
  stopping.abort();
  await clock.advance(1_000);
  await agreeing;
});

test("slots that have taken up all that was agreed are left alone", async () => {
  const { reloads, steps, signal, stopping, clock } = world();
  await reloads.first(signal, () => {});
  const agreeing = reloads.agree(signal);
  await clock.advance(5_000);
  expect(steps).not.toContain("reload");
  stopping.abort();
  await clock.advance(1_000);
  await agreeing;
});

test("a function whose first slot stands still is not waited for, and is agreed on once the slot is repaired", async () => {
  const { reloads, state, steps, signal, stopping, clock } = world();
  state.unsettled = ["hot"];
  await reloads.first(signal, () => {});
  expect(reloads.isAgreed).toBe(false);
  state.stuck = true;
  expect(reloads.isAgreed).toBe(true);
  const agreeing = reloads.agree(signal);
  await clock.advance(5_000);
  expect(steps).not.toContain("reload");
  state.stuck = false;
  await clock.advance(1_000);
  expect([reloads.isAgreed, steps.includes("reload")]).toEqual([false, true]);
  stopping.abort();
  await clock.advance(1_000);
  await agreeing;
});
