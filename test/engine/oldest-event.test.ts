// The wait of events that more room to run would shorten, by which a fleet is scaled.
import { describe, expect, it } from "vitest";
import { noStates } from "../../deploy/dashboard/known-metrics.ts";
import { Metrics } from "../../runtime/observe/metrics.ts";
import { change, DispatchFixture, failure, manifest, quiet } from "./fixture.ts";

/** More events than one function may have in progress, including those that wait at its runner. */
const many = 300;

const open = async (policy: Parameters<typeof manifest>[0] = {}) =>
  (await DispatchFixture.open({ manifest: manifest({ concurrency: 1, ...policy }) })).listed();

const due = ({ function: loaded }: DispatchFixture) => loaded.status().dueSeconds;

async function pass({ clock, runner }: DispatchFixture, seconds: number): Promise<void> {
  await quiet(runner);
  await clock.advance(seconds * 1_000);
  await quiet(runner);
}

/** Sends one change for each object. */
function flood({ subscription }: DispatchFixture, objects = many, from = 0): void {
  for (let n = from; n < from + objects; n++) subscription.change(change("Added", `o${n}`, 11 + n));
}

describe("the age of the oldest event that could run", () => {
  it("is the time for which it has waited for its function's turn, and 0 once all have begun", async () => {
    const fixture = await open();
    fixture.runner.answer = () => undefined;
    flood(fixture);
    await pass(fixture, 40);
    expect(due(fixture)).toBe(40);
    flood(fixture, 10, many);
    await pass(fixture, 2);
    expect(due(fixture)).toBe(42);
    fixture.runner.answer = () => ({ type: "ok", durationMs: 1 });
    await fixture.runner.end("o0");
    await quiet(fixture.runner);
    expect(fixture.runner.deliveries).toHaveLength(many + 10);
    expect(due(fixture)).toBe(0);
  });

  it("leaves out what runs, what waits for its own object, for a retry, or for quiet", async () => {
    const running = await open();
    running.runner.answer = () => undefined;
    running.subscription.change(change("Added", "a", 11));
    running.subscription.change(change("Modified", "a", 12));
    await pass(running, 30);
    expect(running.function.status().lagSeconds).toBe(30);
    expect(due(running)).toBe(0);

    const failing = await open({
      onFailure: "Block",
      retry: { maxAttempts: 1, initialDelayMs: 1_000, maxDelayMs: 60_000, factor: 2 },
    });
    failing.runner.answer = () => failure();
    failing.subscription.change(change("Added", "a", 11));
    await pass(failing, 30);
    expect(failing.function.status()).toMatchObject({ lagSeconds: 30, blockedLanes: 1, dueSeconds: 0 });

    const interrupted = await open();
    interrupted.runner.answer = () => ({ type: "interrupted" });
    interrupted.subscription.change(change("Added", "a", 11));
    await pass(interrupted, 0);
    await interrupted.clock.advance(20);
    expect(interrupted.function.status().lagSeconds).toBeGreaterThan(0);
    expect(due(interrupted)).toBe(0);

    const debounced = await open({ debounceMs: 60_000 });
    debounced.subscription.change({ ...change("Added", "a", 11), receivedAt: debounced.clock.monotonic() });
    await pass(debounced, 30);
    expect(debounced.runner.deliveries).toHaveLength(0);
    expect(due(debounced)).toBe(0);
  });

  it("is 0 while the function is held, since no replica more would run it", async () => {
    const fixture = await open();
    fixture.runner.answer = () => undefined;
    fixture.function.hold();
    flood(fixture, 10);
    await pass(fixture, 30);
    expect(due(fixture)).toBe(0);
    fixture.function.release();
    await pass(fixture, 1);
    expect(fixture.function.status().lagSeconds).toBe(31);
  });

  it("is the same for a reconciler's keys", async () => {
    const fixture = await open({ mode: "Reconcile" });
    fixture.runner.answer = () => undefined;
    flood(fixture, 3);
    await pass(fixture, 30);
    expect(fixture.runner.deliveries).toHaveLength(1);
    expect(due(fixture)).toBe(30);
    for (const name of ["o0", "o1"]) await fixture.runner.end(name);
    await pass(fixture, 1);
    expect(due(fixture)).toBe(0);
  });
});

it("`/metrics` has it of each function, and the greatest of all without a label", async () => {
  const metrics = new Metrics();
  const letterStock = { count: 0, bytes: 0, withoutBody: 0, bodiesDropped: 0, lettersDropped: 0 };
  const of = (name: string, dueSeconds: number) =>
    ({
      name,
      isPaused: false,
      lagSeconds: 90,
      dueSeconds,
      queued: 0,
      spilled: 0,
      inFlight: 0,
      letterStock,
      parentSeconds: new Map(),
    }) as const;
  const shown: ReturnType<typeof of>[] = [];
  const states = { ...noStates, functions: () => shown };
  expect(await metrics.text(states)).toContain("\nwatchfire_oldest_event_age_seconds 0\n");
  shown.push(of("a", 3), of("b", 7.5), of("c", 0));
  const text = await metrics.text(states);
  expect(text).toContain("\nwatchfire_oldest_event_age_seconds 7.5\n");
  expect(text).toContain('\nwatchfire_function_oldest_event_age_seconds{function="a"} 3\n');
});
