import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Delivery, DeliveryListener } from "../../runtime/engine/delivery/delivery.ts";
import type { Subscription } from "../../runtime/engine/intake/subscription.ts";
import { FairScheduler, type FairShare, PrefetchWindow } from "../../runtime/engine/work/fair-scheduler.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { change, DispatchFixture, done, failure, manifest, quiet } from "./fixture.ts";

/** A function that starts its events as soon as it may. */
class Worker {
  /** Arguments for `leave`, one for each running event, oldest first. */
  readonly underWay: number[] = [];
  /** Number of events that it started in each of its turns, and outside of them. */
  readonly began: number[] = [];
  private waiting = 0;
  readonly place: ReturnType<FairScheduler["addFunction"]>;
  private readonly most: number;

  constructor(scheduler: FairScheduler, most = Number.POSITIVE_INFINITY) {
    this.most = most;
    this.place = scheduler.addFunction("f", () => this.pump());
  }

  get queued(): number {
    return this.waiting;
  }

  take(events: number): void {
    this.waiting += events;
    this.pump();
  }

  end(events: number): void {
    for (const period of this.underWay.splice(0, events)) this.place.leave(period);
    this.pump();
  }

  private pump(): void {
    let began = 0;
    while (this.waiting > 0 && this.underWay.length < this.most && this.place.mayBegin()) {
      this.waiting--;
      began++;
      this.underWay.push(this.place.enter());
    }
    if (began > 0) this.began.push(began);
  }
}

const workers = (scheduler: FairScheduler, count: number, most?: number) =>
  Array.from({ length: count }, () => new Worker(scheduler, most));
const sum = (all: readonly Worker[]) => all.reduce((events, { underWay }) => events + underWay.length, 0);

describe("functions whose handlers are brief", () => {
  it("begin at once while few events are under way", () => {
    const all = workers(new FairScheduler(new VirtualClock()), 4);
    for (const each of all) each.take(64);
    expect(all.map(({ began }) => began)).toEqual([[64], [64], [64], [64]]);
  });

  it("take turns beyond that, in the order in which they came, of 64 events each", () => {
    const scheduler = new FairScheduler(new VirtualClock());
    const [first, second, third, fourth] = workers(scheduler, 4) as [Worker, Worker, Worker, Worker];
    first.take(256);
    for (const each of [second, third, fourth]) each.take(1);
    for (const each of [second, third]) each.take(99);
    expect(sum([second, third, fourth])).toBe(0);
    first.end(1);
    expect([second, third, fourth].map(({ began }) => began)).toEqual([[64], [], []]);
    first.end(64);
    expect([second, third, fourth].map(({ began }) => began)).toEqual([[64], [64], []]);
    // A function that has had its turn comes after those that have not.
    first.end(64);
    expect([second, third, fourth].map(({ began }) => began)).toEqual([[64], [64], [1]]);
    first.end(1);
    expect([second, third, fourth].map(({ began }) => began)).toEqual([[64, 36], [64], [1]]);
  });

  it("take none where one is alone, however many of its events are under way", () => {
    const [alone] = workers(new FairScheduler(new VirtualClock()), 1) as [Worker];
    alone.take(1_000);
    expect(alone.began).toEqual([1_000]);
  });

  it("are never more than a turn beyond 256 events together, and none waits that could begin", () => {
    const steps = fc.array(
      fc.record({ who: fc.nat(4), does: fc.constantFrom("take" as const, "end" as const), events: fc.nat(300) }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const scheduler = new FairScheduler(new VirtualClock());
        // Two of them always start something, so there are always at least two.
        const five = workers(scheduler, 5, 200);
        for (const each of five) each.take(1);
        for (const { who, does, events } of all) {
          const worker = five[who] as Worker;
          if (does === "take") worker.take(events);
          else worker.end(Math.min(events, worker.underWay.length - 1));
          expect(sum(five)).toBeLessThan(256 + 64);
          const waits = five.some(({ queued, underWay }) => queued > 0 && underWay.length < 200);
          if (waits) expect(sum(five)).toBeGreaterThanOrEqual(256);
        }
        while (sum(five) > 0) for (const each of five) each.end(each.underWay.length);
        expect(five.map(({ queued }) => queued)).toEqual([0, 0, 0, 0, 0]);
      }),
    );
  });

  it("hold nobody up for long where nothing of theirs comes back, and are counted again from then on", async () => {
    const clock = new VirtualClock();
    const scheduler = new FairScheduler(clock);
    const [hangs, waits] = workers(scheduler, 2) as [Worker, Worker];
    hangs.take(256);
    waits.take(200);
    await clock.advance(199);
    expect(waits.began).toEqual([]);
    await clock.advance(1);
    expect(waits.began).toEqual([200]);
    expect([hangs.place.isStuck, waits.place.isStuck]).toEqual([true, false]);
    // A late end was written off before, and does not free room a second time.
    hangs.end(256);
    expect(hangs.place.isStuck).toBe(false);
    hangs.take(300);
    expect(hangs.underWay.length).toBe(56);
  });

  it("hang no more once something has come back, also of what began uncounted", async () => {
    const clock = new VirtualClock();
    const [hangs, waits] = workers(new FairScheduler(clock), 2) as [Worker, Worker];
    hangs.take(256);
    waits.take(1);
    await clock.advance(200);
    expect([hangs.place.isStuck, hangs.place.readyLimit]).toEqual([true, Number.POSITIVE_INFINITY]);
    hangs.place.leave(undefined);
    expect(hangs.place.isStuck).toBe(false);
  });

  it("are not taken for hanging where the event loop stood still", async () => {
    const clock = new VirtualClock();
    const [one, waits] = workers(new FairScheduler(clock), 2) as [Worker, Worker];
    one.take(256);
    waits.take(1);
    const { monotonic } = clock;
    clock.monotonic = () => monotonic.call(clock) + 300;
    await clock.advance(50);
    expect(one.place.isStuck).toBe(false);
    await clock.advance(50);
    expect(one.place.isStuck).toBe(true);
  });

  it("are not taken for hanging while some of their events come back", async () => {
    const clock = new VirtualClock();
    const [slow, waits] = workers(new FairScheduler(clock), 2) as [Worker, Worker];
    slow.take(400);
    waits.take(200);
    for (let ms = 0; ms < 1_500; ms += 150) {
      slow.end(1);
      await clock.advance(150);
    }
    expect(waits.began).toEqual([]);
    expect(waits.place.readyLimit).toBe(4_000);
  });

  it("are not taken for hanging as soon as they have begun, however long the others have hung", async () => {
    const clock = new VirtualClock();
    const [hangs, young, waits] = workers(new FairScheduler(clock), 3) as [Worker, Worker, Worker];
    hangs.take(200);
    await clock.advance(180);
    young.take(56);
    waits.take(300);
    await clock.advance(50);
    // The 200 are written off, the 56 are not.
    expect([waits.began, young.place.isStuck]).toEqual([[200], false]);
    await clock.advance(150);
    expect([waits.queued, young.place.isStuck]).toEqual([0, true]);
  });

  it("leave no timer behind once nobody waits", async () => {
    const clock = new VirtualClock();
    const [one, other] = workers(new FairScheduler(clock), 2) as [Worker, Worker];
    one.take(256);
    other.take(1);
    expect(clock.timers).toBe(1);
    one.end(256);
    other.end(1);
    await clock.advance(50);
    expect(clock.timers).toBe(0);
  });

  it("share room for what waits among those that are engaged, as long as their turn is to come", () => {
    const scheduler = new FairScheduler(new VirtualClock());
    const hundred = workers(scheduler, 100);
    for (const each of hundred) each.take(10);
    const [first, last] = [hundred[0], hundred[99]] as [Worker, Worker];
    expect([first.place.readyLimit, last.place.readyLimit]).toEqual([Number.POSITIVE_INFINITY, 80]);
    for (const each of workers(scheduler, 4_900)) each.take(1);
    expect(last.place.readyLimit).toBe(16);
    while (last.queued > 0) for (const each of hundred) each.end(10);
    expect(last.place.readyLimit).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("a handler", () => {
  const ended = (...ms: readonly number[]) => {
    const ahead = new PrefetchWindow();
    for (const each of ms) ahead.ended(1, each);
    return ahead;
  };

  it("is brief once four in a row took no more than 15 ms", () => {
    expect([ended(1, 1, 15).isBrief, ended(1, 1, 1, 15).isBrief, ended(1, 1, 1, 16).isBrief]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it("stays brief where one in nine takes longer, and not where one in four does", () => {
    const nine = Array.from({ length: 900 }, (_, index) => (index % 9 === 8 ? 100 : 1));
    const four = Array.from({ length: 900 }, (_, index) => (index % 4 === 3 ? 100 : 1));
    expect([ended(...Array(64).fill(1), ...nine).isBrief, ended(...Array(64).fill(1), ...four).isBrief]).toEqual([
      true,
      false,
    ]);
  });

  it("is brief no more once it has brought down what ran it", () => {
    const ahead = ended(1, 1, 1, 1);
    ahead.interrupted();
    expect(ahead.isBrief).toBe(false);
  });
});

/**
 * Makes functions of one dispatcher, each with a separate source; "batches" takes ten events at once. `given`: the events that
 * the
 * runner has received for each.
 */
async function functions(...names: readonly string[]) {
  const clock = new VirtualClock();
  const scheduler = new FairScheduler(clock);
  const places: FairShare[] = [];
  const place = scheduler.addFunction.bind(scheduler);
  scheduler.addFunction = (...of) => {
    const made = place(...of);
    places.push(made);
    return made;
  };
  const it = await (await DispatchFixture.open({ clock, scheduler })).listed();
  const given = new Map<string, number>();
  const give = it.runner.give.bind(it.runner);
  it.runner.give = (delivery: Delivery, listener: DeliveryListener) => {
    given.set(delivery.function, (given.get(delivery.function) ?? 0) + 1);
    give(delivery, listener);
  };
  const subscriptions = new Map<string, Subscription>();
  for (const name of names) {
    const loaded = await it.dispatcher.function(
      { ...manifest(name === "batches" ? { batch: { maxSize: 10, maxWaitMs: 100 } } : {}), name },
      { usesOldObject: false },
    );
    const subscription = loaded.subscription("settings", { selection: "all", namespace: "" });
    subscription.list("initial", undefined).end(resourceVersion("1"));
    subscriptions.set(name, subscription);
  }
  let rv = 10;
  /** Sends each function the next changes, one function after the other. */
  const burst = async (count: number, ...to: readonly string[]) => {
    for (let index = 0; index < count; index++) {
      rv++;
      for (const name of to) subscriptions.get(name)?.change(change("Added", `${name}-${rv}`, rv));
    }
    await quiet(it.runner);
  };
  // The first place belongs to the fixture's own function.
  return { it, given, burst, subscriptions, places: places.slice(1) };
}

describe("in a dispatcher", () => {
  it("functions whose handlers are brief take turns, others begin at once, and all events are handled", async () => {
    const { it, given, burst } = await functions("one", "two", "slow");
    await burst(300, "one", "two");
    expect([given.get("one"), given.get("two")]).toEqual([300, 300]);
    given.clear();
    it.runner.answer = () => undefined;
    await burst(300, "one");
    expect(given.get("one")).toBe(260);
    await burst(100, "two", "slow");
    expect([given.get("two"), given.get("slow")]).toEqual([undefined, 4]);
    for (let ended = 0; ended < 5; ended++) {
      const [running] = [...it.runner.open.keys()].filter((name) => name.startsWith("one"));
      await it.runner.end(running ?? "");
    }
    expect([given.get("one"), given.get("two")]).toEqual([260, 64]);
    it.runner.answer = () => done;
    for (const name of [...it.runner.open.keys()]) await it.runner.end(name);
    await it.clock.advance(1_000);
    await quiet(it.runner);
    expect(Object.fromEntries(given)).toEqual({ one: 300, two: 100, slow: 100 });
    expect(it.outcomes.get("ok")).toBe(600 + 500);
  });

  it("a function whose handlers have become slow holds up no other once that is seen", async () => {
    const { it, given, burst } = await functions("one", "two", "other");
    await burst(300, "one", "two", "other");
    given.clear();
    it.runner.answer = ({ function: name }) => (name === "other" ? done : undefined);
    await burst(300, "one");
    await burst(100, "two");
    await burst(50, "other");
    for (let ended = 0; ended < 8; ended++) {
      expect(given.get("other")).toBeUndefined();
      const [running] = [...it.runner.open.keys()].filter((name) => name.startsWith("one"));
      await it.runner.end(running ?? "", { type: "ok", durationMs: 100 });
    }
    expect(given.get("other")).toBe(50);
  });

  it("a function that takes batches waits for no turn", async () => {
    const { it, given, burst } = await functions("one", "batches");
    await burst(300, "one", "batches");
    given.clear();
    it.runner.answer = () => undefined;
    await burst(300, "one");
    await burst(10, "batches");
    expect(given.get("batches")).toBe(1);
  });

  it("a function that hangs holds up no other for longer than it takes to see that", async () => {
    const { it, given, burst } = await functions("hangs", "other");
    await burst(300, "hangs", "other");
    given.clear();
    it.runner.answer = ({ function: name }) => (name === "hangs" ? undefined : done);
    await burst(300, "hangs");
    await burst(50, "other");
    expect(given.get("other")).toBeUndefined();
    await it.clock.advance(250);
    await quiet(it.runner);
    expect(given.get("other")).toBe(50);
    // The attempts that it still starts do not block the other either.
    await burst(300, "hangs");
    await burst(50, "other");
    expect(given.get("other")).toBe(100);
  });

  it("a function whose handlers fail at once holds no source up, however many events wait for a retry", async () => {
    const names = Array.from({ length: 40 }, (_, index) => `f${index}`);
    const { it, burst, subscriptions } = await functions(...names);
    await burst(20, ...names);
    it.runner.answer = ({ function: name }) => (name === "f0" ? failure() : undefined);
    await burst(300, "f0");
    await burst(100, ...names.slice(1));
    // 300 of its events wait for a retry, and one more for its turn.
    await burst(1, "f0");
    expect(subscriptions.get("f0")?.congested).toBeUndefined();
  });

  it("a function hangs no more once an event has come back that it began meanwhile", async () => {
    const { it, burst, places } = await functions("one", "other", "waits");
    await burst(300, "one", "other", "waits");
    it.runner.answer = () => undefined;
    await burst(1, "one");
    await burst(300, "other");
    await burst(1, "waits");
    await it.clock.advance(200);
    expect(places[0]?.isStuck).toBe(true);
    await burst(1, "one");
    const [, second] = [...it.runner.open.keys()].filter((name) => name.startsWith("one"));
    await it.runner.end(second ?? "");
    expect(places[0]?.isStuck).toBe(false);
  });

  it("the sources of a function wait once it holds its share of what all may have waiting", async () => {
    const names = Array.from({ length: 40 }, (_, index) => `f${index}`);
    const { it, burst, subscriptions } = await functions(...names);
    await burst(20, ...names);
    it.runner.answer = () => undefined;
    const waits = () => names.filter((name) => subscriptions.get(name)?.congested);
    await burst(199, ...names);
    expect(waits()).toEqual([]);
    await burst(60, ...names);
    // Functions that have started all they may wait for their own handlers.
    expect(waits().length).toBeGreaterThan(30);
    const free = names.map((name) => subscriptions.get(name)?.congested);
    it.runner.answer = () => done;
    for (const name of [...it.runner.open.keys()]) await it.runner.end(name);
    // They continue with the returned room, long before the next measurement of their speed.
    await it.clock.advance(100);
    await Promise.all(free);
    expect(waits()).toEqual([]);
  });
});
