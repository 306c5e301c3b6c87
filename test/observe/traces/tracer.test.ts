import { expect, test } from "vitest";
import { type Delivery, type Outcome, run } from "../../../runtime/engine/delivery/delivery.ts";
import type { EndedSpan } from "../../../runtime/observe/traces/exporter.ts";
import { Tracer } from "../../../runtime/observe/traces/tracer.ts";
import { manifestOf } from "../../access/api-server.ts";
import { promisedRunner } from "../../engine/promised-runner.ts";
import { VirtualClock } from "../../virtual-clock.ts";

const deliveryOf = (over: Partial<Delivery> = {}): Delivery => ({
  function: "f",
  trigger: "apps",
  id: "apps:u/1/Modified",
  type: "Modified",
  object: { apiVersion: "v1", kind: "ConfigMap", namespace: "demo", name: "a", uid: "u" },
  resourceVersion: "1",
  attempt: 1,
  redelivered: false,
  flags: {},
  body: Buffer.from("{}"),
  timeoutMs: 1000,
  ...over,
});

const failed: Outcome = {
  type: "failed",
  durationMs: 5,
  error: { name: "TypeError", message: "no greeting", stack: "" },
};

/** A tracer, and the spans that its attempts made. */
function tracerOf({ ratio = 1, onFailure = "DeadLetter" as "Block" | "DeadLetter", runtime = "shop" } = {}) {
  const spans: EndedSpan[] = [];
  const clock = new VirtualClock();
  const { delivery } = manifestOf();
  const tracer = new Tracer({
    exporter: { add: (span) => void spans.push(span) },
    ratio,
    runtime,
    clock,
    redact: (_, text) => text,
    manifestOf: () => ({ delivery: { ...delivery, onFailure, retry: { ...delivery.retry, maxAttempts: 2 } } }),
  });
  const attempt = (over: Partial<Delivery> = {}, outcome: Outcome = { type: "ok", durationMs: 5 }) =>
    run(tracer.traced(promisedRunner(() => outcome)), deliveryOf(over));
  return { tracer, spans, clock, attempt, names: () => spans.map(({ name }) => name) };
}

test("the span of an event ends with the attempt after which no other follows", async () => {
  const { attempt, names } = tracerOf();
  await attempt({}, failed);
  expect(names()).toEqual(["waiting", "attempt"]);
  await attempt({ attempt: 2 }, failed);
  expect(names()).toEqual(["waiting", "attempt", "waiting", "attempt", "event f"]);
});

test("the second wait begins where the first attempt ended", async () => {
  const { attempt, spans, clock } = tracerOf();
  await clock.advance(100);
  await attempt({ receivedAt: clock.now() - 40 }, failed);
  await clock.advance(1_000);
  await attempt({ attempt: 2 });
  const waits = spans.filter(({ name }) => name === "waiting");
  expect(waits.map(({ begin, end }) => end - begin)).toEqual([40, 1_000]);
  expect(spans.at(-1)).toMatchObject({ name: "event f", begin: clock.now() - 1_040 });
});

test("an event that blocks its object has no end, however often it fails", async () => {
  const { attempt, names } = tracerOf({ onFailure: "Block" });
  for (const number of [1, 2, 3]) await attempt({ attempt: number }, failed);
  expect(names()).not.toContain("event f");
});

test("an interrupted attempt fails, and the next one is in the same span of the event", async () => {
  const { attempt, spans } = tracerOf();
  await attempt({}, { type: "interrupted" });
  await attempt({ redelivered: true });
  const [first, second] = spans.filter(({ name }) => name === "attempt");
  expect(first?.failure).toBe("its executor ended");
  expect(second?.parent).toBe(first?.parent);
});

test("an attempt that did not begin leaves nothing", async () => {
  const { attempt, spans, tracer } = tracerOf();
  await attempt({}, { type: "unbegun" });
  expect(spans).toEqual([]);
  expect(tracer.traceOf(deliveryOf())).toBeUndefined();
});

test("attempts of another process are in the event's trace, and other runtimes have traces of their own", async () => {
  const traces = [tracerOf(), tracerOf(), tracerOf({ runtime: "other" })].map(async ({ attempt, spans }) => {
    await attempt();
    return spans[0]?.trace;
  });
  const [one, two, other] = await Promise.all(traces);
  expect(one).toMatch(/^[0-9a-f]{32}$/);
  expect(two).toBe(one);
  expect(other).not.toBe(one);
});

test("a ratio samples that share of the events, and the same ones in each process", async () => {
  const sampled = async () => {
    const { attempt, spans } = tracerOf({ ratio: 0.25 });
    for (let number = 0; number < 2_000; number++) await attempt({ id: `apps:u/${number}/Modified` });
    return spans.filter(({ name }) => name === "event f").map(({ attributes }) => attributes["watchfire.run"]);
  };
  const first = await sampled();
  expect(first.length).toBeGreaterThan(400);
  expect(first.length).toBeLessThan(600);
  expect(await sampled()).toEqual(first);
});
