import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canaryText, readCanary, saltOf } from "../../runtime/catalog/canary.ts";
import { indexText } from "../../runtime/catalog/deployed-index.ts";
import { AbortedCanaries } from "../../runtime/control/aborted-canaries.ts";
import { Pauses } from "../../runtime/control/pauses.ts";
import type { Delivery, DeliveryListener, Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { CanaryRoute, isInShare } from "../../runtime/sandbox/host/canary-route.ts";
import { change, DispatchFixture, done, failure, manifest, quiet, ScriptedRunner } from "../engine/fixture.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { VirtualClock } from "../virtual-clock.ts";

const aRule = { failureRate: 0.2, minRuns: 5 };

interface Begun {
  readonly version: "current" | "canary";
  readonly delivery: Delivery;
  readonly listener: DeliveryListener;
}

/** A route to two versions whose attempts the test ends. */
function divided({ share = 50, concurrency = 4, rule = aRule } = {}) {
  const begun: Begun[] = [];
  const reasons: string[] = [];
  const version = (name: Begun["version"]) => ({
    parkedMs: 0,
    give: (delivery: Delivery, listener: DeliveryListener) => void begun.push({ version: name, delivery, listener }),
    recall() {},
  });
  const canary = version("canary");
  const clock = new VirtualClock();
  const parts = { id: "1", salt: "s", share, rule, concurrency, clock, aborted: (why: string) => reasons.push(why) };
  const route = new CanaryRoute(parts);
  route.begin(version("current"), canary);
  const outcomes: Outcome["type"][] = [];
  const give = (name: string) => {
    const object = { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name, uid: name };
    const listener = { begins() {}, ended: ({ type }: Outcome) => void outcomes.push(type) };
    route.give({ type: "Added", id: name, object } as Delivery, listener);
  };
  /** Submits an event of each name, and ends its attempt. */
  const run = (names: readonly string[], outcome: (of: Begun) => Outcome) => {
    for (const name of names) {
      give(name);
      const one = begun.at(-1);
      if (one) one.listener.ended(outcome(one));
    }
  };
  return { route, canary, begun, reasons, outcomes, give, run };
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `o${index}`);
const inCanary = names(400).filter((name) => isInShare("s", `a/${name}`, 50));
const inCurrent = names(400).filter((name) => !isInShare("s", `a/${name}`, 50));

describe("the share of a canary", () => {
  test("is that part of the keys, and a larger share has every key of a smaller one", () => {
    const salts = fc.string({ minLength: 1 });
    const shares = fc.double({ min: 0.1, max: 99.9, noNaN: true });
    fc.assert(
      fc.property(salts, shares, shares, (salt, one, other) => {
        const [less, more] = [Math.min(one, other), Math.max(one, other)];
        const of = (share: number) => names(1_000).filter((name) => isInShare(salt, name, share));
        const [few, many] = [of(less), new Set(of(more))];
        expect(few.every((name) => many.has(name))).toBe(true);
        // Six standard deviations.
        const spread = 6 * Math.sqrt(1_000 * (more / 100) * (1 - more / 100)) + 1;
        expect(Math.abs(many.size - 10 * more)).toBeLessThan(spread);
      }),
    );
  });

  test("has the same keys for all functions of a set, and others for other code", () => {
    const entry = (name: string, sha: string) => ({ name, configMap: name, sha256: sha.repeat(64) });
    const salt = saltOf({ functions: [entry("a", "1"), entry("b", "2")] });
    expect(saltOf({ functions: [entry("b", "2"), entry("a", "1")] })).toBe(salt);
    expect(saltOf({ functions: [entry("a", "1"), entry("b", "3")] })).not.toBe(salt);
  });
});

test("a record with another index than the one it was written for is no canary", () => {
  const entries = [{ name: "a", configMap: "a-1", sha256: "1".repeat(64) }];
  const record = {
    share: 10,
    at: new Date(0).toISOString(),
    by: { account: "ada" },
    git: null,
    message: "",
    functions: entries,
  };
  const own = indexText(entries);
  const index = (text: string) => {
    const data = { "functions.json": text, "canary.json": canaryText(record, own) };
    return { metadata: { name: "index", resourceVersion: "1", labels: {} }, data, binaryData: {} };
  };
  expect(readCanary(index(own))).toMatchObject({ share: 10, by: { account: "ada" } });
  expect(readCanary(index(indexText([])))).toBeUndefined();
});

describe("the rule of a canary", () => {
  test("aborts once enough of its attempts have failed, and more than of the current code's; then all keys are the current code's", () => {
    const { route, run, reasons, begun } = divided();
    run(inCurrent.slice(0, 10), () => done);
    run(inCanary.slice(0, 4), () => failure());
    expect([reasons, route.state.aborted]).toEqual([[], undefined]);
    run(inCanary.slice(4, 5), () => failure());
    expect(reasons).toEqual(["5 of its 5 attempts failed, of the current code's 0 of 10"]);
    expect(route.state).toMatchObject({ aborted: reasons[0], canary: { runs: 5, failures: 5 }, current: { runs: 10 } });
    const before = begun.length;
    run(inCanary, () => failure());
    expect(new Set(begun.slice(before).map(({ version }) => version))).toEqual(new Set(["current"]));
    expect(reasons).toHaveLength(1);
  });

  test("does not abort while the current code fails as often, nor for attempts that were interrupted", () => {
    const { run, reasons } = divided();
    run(inCurrent.slice(0, 5), () => failure());
    run(inCanary.slice(0, 20), () => failure());
    run(inCanary, () => ({ type: "interrupted" }));
    expect(reasons).toEqual([]);
    run(inCurrent.slice(5, 6), () => done);
    run(inCanary.slice(0, 1), () => failure());
    expect(reasons).toEqual(["21 of its 21 attempts failed, of the current code's 5 of 6"]);
  });

  test("aborts at once if the canary's code ended executors until it was parked", () => {
    const { run, canary, reasons } = divided();
    canary.parkedMs = 1_000;
    run(inCurrent, () => done);
    expect(reasons).toEqual([]);
    run(inCanary.slice(0, 1), () => ({ type: "interrupted" }));
    expect(reasons).toEqual(["its code ended executors"]);
  });

  test("compares durations, by quantiles that are at most 10 % too high", () => {
    const { run, route } = divided();
    run(inCanary.slice(0, 100), () => ({ type: "ok", durationMs: 20 }));
    run(inCanary.slice(100, 102), () => ({ type: "ok", durationMs: 3_000 }));
    const { p50Ms = 0, p99Ms = 0 } = route.state.canary;
    for (const [found, exact] of [
      [p50Ms, 20],
      [p99Ms, 3_000],
    ] as const)
      expect([found >= exact, found <= exact * 1.1]).toEqual([true, true]);
    expect(route.state.current).toEqual({ runs: 0, failures: 0, p50Ms: undefined, p99Ms: undefined });
  });
});

describe("a divided function", () => {
  test("has at most its concurrency of attempts in both versions together, and returns the others when recalled", async () => {
    const { route, give, begun, outcomes } = divided({ concurrency: 3 });
    for (const name of names(10)) give(name);
    expect(begun).toHaveLength(3);
    begun[0]?.listener.ended(done);
    expect(begun).toHaveLength(4);
    route.recall();
    await Promise.resolve();
    expect(outcomes).toEqual(["ok", ...Array(6).fill("unbegun")]);
    for (const { listener } of begun.slice(1)) listener.ended(done);
    expect(begun).toHaveLength(4);
  });

  test("ends once its canary has no attempt any more, and what waits is then the current code's", async () => {
    const { route, give, begun } = divided({ concurrency: 2 });
    const [one = "", two = "", ...more] = inCanary.slice(0, 5);
    for (const name of [one, two, ...more]) give(name);
    let isOver = false;
    void route.end().then(() => {
      isOver = true;
    });
    begun[0]?.listener.ended(done);
    await Promise.resolve();
    expect([isOver, begun.map(({ version }) => version)]).toEqual([false, ["canary", "canary", "current"]]);
    begun[1]?.listener.ended(done);
    await Promise.resolve();
    expect([isOver, begun.map(({ version }) => version)]).toEqual([
      true,
      ["canary", "canary", ...more.map(() => "current")],
    ]);
  });

  test("keeps each object's order, one attempt at a time, with all attempts of an event in one version", async () => {
    const event = fc.record({ name: fc.integer({ min: 0, max: 5 }), fails: fc.integer({ min: 0, max: 2 }) });
    const plans = fc.record({
      events: fc.array(event, { minLength: 1, maxLength: 40 }),
      abortAfter: fc.option(fc.nat(40)),
      concurrency: fc.integer({ min: 1, max: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(plans, async ({ events, abortAfter, concurrency }) => {
        const runner = new DividedRunner(concurrency);
        const it = await (await DispatchFixture.open({ runner, manifest: manifest({ concurrency }) })).listed();
        const failing = new Map(events.map(({ fails }, index) => [String(20 + index), fails]));
        const open = new Map<string, string>();
        const seen: { name: string; rv: string; version: string; aborted: boolean }[] = [];
        runner.handles = async (delivery, version) => {
          const { name } = delivery.object;
          expect(open.has(name)).toBe(false);
          open.set(name, version);
          expect(open.size).toBeLessThanOrEqual(concurrency);
          seen.push({ name, rv: delivery.resourceVersion, version, aborted: runner.isAborted });
          if (seen.length === abortAfter) runner.abort();
          await new Promise((resolve) => setImmediate(resolve));
          open.delete(name);
          return delivery.attempt <= (failing.get(delivery.resourceVersion) ?? 0) ? failure() : done;
        };
        const known = new Set<number>();
        for (const [index, { name }] of events.entries()) {
          it.subscription.change(change(known.has(name) ? "Modified" : "Added", `o${name}`, 20 + index));
          known.add(name);
        }
        for (let turn = 0; turn < 120; turn++) {
          await quiet(runner);
          await it.clock.advance(1_000);
        }
        expect(it.function.status()).toMatchObject({ queued: 0, inFlight: 0 });
        for (const [, of] of Map.groupBy(seen, ({ name }) => name)) {
          expect(of.map(({ rv }) => Number(rv))).toEqual(of.map(({ rv }) => Number(rv)).toSorted((a, b) => a - b));
          expect(new Set(of.filter(({ aborted }) => !aborted).map(({ version }) => version)).size).toBeLessThan(2);
        }
        expect(seen.filter(({ aborted, version }) => aborted && version === "canary")).toEqual([]);
        await it.dispatcher.drain(0);
      }),
      { numRuns: 20 },
    );
  }, 60_000);
});

/** A runner that divides deliveries between two scripted ones. */
class DividedRunner extends ScriptedRunner {
  handles: (delivery: Delivery, version: "current" | "canary") => Promise<Outcome> = async () => done;
  private readonly route: CanaryRoute;

  constructor(concurrency: number) {
    super();
    const rule = { failureRate: 1, minRuns: 1 };
    const parts = { id: "1", salt: "s", share: 50, rule, concurrency, clock: new VirtualClock(), aborted() {} };
    this.route = new CanaryRoute(parts);
    const canary = new ScriptedRunner();
    this.answer = (delivery) => this.handles(delivery, "current");
    canary.answer = (delivery) => {
      this.deliveries.push(delivery);
      return this.handles(delivery, "canary");
    };
    const recalls = (name: string) => super.recall(name);
    this.route.begin(
      { parkedMs: 0, give: (delivery, listener) => super.give(delivery, listener), recall: () => recalls("copy") },
      {
        parkedMs: 0,
        give: (delivery, listener) => canary.give(delivery, listener),
        recall: () => canary.recall("copy"),
      },
    );
  }

  get isAborted(): boolean {
    return this.route.state.aborted !== undefined;
  }

  abort(): void {
    this.route.abort("the test");
  }

  override give(delivery: Delivery, listener: DeliveryListener): void {
    this.route.give(delivery, listener);
  }

  override recall(functionName: string): void {
    this.route.recall();
    super.recall(functionName);
  }
}

test("an aborted canary stays aborted over a restart, pauses no function, and is forgotten with the next canary", async () => {
  const it = await DispatchFixture.open();
  const aborted = new AbortedCanaries(it.store);
  await aborted.add("copy", "first", 7);
  await aborted.add("copy-2", "second", 8);
  const store = new MemoryStore(it.disk);
  const again = new AbortedCanaries(store);
  expect([await again.at("copy", "first"), await again.at("copy", "other")]).toEqual([7, undefined]);
  const held: string[] = [];
  const dispatcher = { hold: (name: string) => void held.push(name), release() {} };
  await Pauses.open({ store, dispatcher, clock: it.clock });
  expect(held).toEqual([]);
  await again.forget("copy", "first");
  expect(await again.at("copy", "first")).toBe(7);
  await again.forget("copy", "next");
  expect([await again.at("copy", "first"), await again.at("copy-2", "second")]).toEqual([undefined, 8]);
});
