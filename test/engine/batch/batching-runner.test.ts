import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BatchingRunner } from "../../../runtime/engine/batch/batching-runner.ts";
import { type Delivery, type Outcome, run } from "../../../runtime/engine/delivery/delivery.ts";
import { settle, VirtualClock } from "../../virtual-clock.ts";
import { done, failure } from "../fixture.ts";
import { promisedRunner } from "../promised-runner.ts";

const deliveryOf = (id: string, over: Partial<Delivery> = {}): Delivery => ({
  function: "copy",
  trigger: "settings",
  id,
  type: "Modified",
  object: { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: id, uid: id },
  resourceVersion: "7",
  attempt: 1,
  redelivered: false,
  flags: {},
  body: Buffer.from(JSON.stringify({ kind: "ConfigMap", metadata: { name: id } })),
  timeoutMs: 1000,
  ...over,
});

interface Told {
  readonly id: string;
  readonly redelivered: boolean;
  readonly object: { readonly metadata: { readonly name: string } };
}

/** A batching runner on a runner whose answers the test sets, and the deliveries that the latter received. */
class BatchFixture {
  readonly clock = new VirtualClock();
  readonly batches: Told[][] = [];
  readonly ended = new Map<string, Outcome>();
  answer: (ids: readonly string[]) => Outcome | Promise<Outcome> = () => done;
  private readonly runner: BatchingRunner;

  constructor(maxSize: number, maxWaitMs = 1000, concurrency = 1) {
    const inner = promisedRunner(({ body, batch = [] }) => {
      this.batches.push(JSON.parse(body.toString()));
      return this.answer(batch);
    });
    this.runner = new BatchingRunner({ runner: inner, clock: this.clock, batch: { maxSize, maxWaitMs }, concurrency });
  }

  get sizes(): number[] {
    return this.batches.map(({ length }) => length);
  }

  give(...deliveries: Delivery[]): void {
    for (const delivery of deliveries) {
      void run(this.runner, delivery).then((outcome) => {
        if (this.ended.has(delivery.id)) throw new Error(`${delivery.id} ended twice`);
        this.ended.set(delivery.id, outcome);
      });
    }
  }

  recall(): void {
    this.runner.recall("copy");
  }

  async settled(): Promise<void> {
    await this.clock.advance(60_000);
    for (let turn = 0; turn < 100; turn++) await settle();
  }
}

const ids = (count: number) => Array.from({ length: count }, (_, index) => `e${index}`);

describe("a batch", () => {
  test("that is given back before it begins leaves no timer behind", async () => {
    const fixture = new BatchFixture(3);
    fixture.give(deliveryOf("e0"));
    fixture.recall();
    await settle();
    expect([fixture.ended.get("e0")?.type, fixture.clock.timers]).toEqual(["unbegun", 0]);
  });

  test("goes at once when it is full, and else when its first event has waited its time", async () => {
    const fixture = new BatchFixture(3);
    fixture.give(...ids(4).map((id) => deliveryOf(id)));
    await settle();
    expect(fixture.batches.map((batch) => batch.map(({ id }) => id))).toEqual([["e0", "e1", "e2"]]);
    await fixture.clock.advance(999);
    expect(fixture.sizes).toEqual([3]);
    await fixture.clock.advance(1);
    expect(fixture.sizes).toEqual([3, 1]);
  });

  test("holds 4 MiB of objects at most, or one event that is larger", async () => {
    const fixture = new BatchFixture(100);
    const body = Buffer.from(JSON.stringify({ metadata: { name: "x".repeat(3 << 20) } }));
    fixture.give(...ids(3).map((id) => deliveryOf(id, { body })));
    await fixture.settled();
    expect(fixture.sizes).toEqual([1, 1, 1]);
  });

  test("tells each event as it would be told alone, with its object", async () => {
    const fixture = new BatchFixture(2);
    const flags = { initial: true } as const;
    fixture.give(deliveryOf("a", { flags, oldBody: Buffer.from('{"old":1}') }), deliveryOf("b"));
    await fixture.settled();
    const { type, attempt, trigger } = deliveryOf("a");
    const common = { type, attempt, trigger, redelivered: false, resourceVersion: "7" };
    const object = (name: string) => ({ kind: "ConfigMap", metadata: { name } });
    expect(fixture.batches).toEqual([
      [
        { id: "a", ...common, initial: true, object: object("a"), oldObject: { old: 1 } },
        { id: "b", ...common, object: object("b") },
      ],
    ]);
  });

  test("of which some are named as failed is done but for those", async () => {
    const fixture = new BatchFixture(3);
    fixture.answer = () => ({ type: "ok", durationMs: 1, failed: [1] });
    fixture.give(...ids(3).map((id) => deliveryOf(id)));
    await fixture.settled();
    expect(ids(3).map((id) => fixture.ended.get(id)?.type)).toEqual(["ok", "failed", "ok"]);
    expect(fixture.sizes).toEqual([3]);
  });

  test("that asks to be tried later is not halved: all of it waits", async () => {
    const fixture = new BatchFixture(3);
    fixture.answer = () => failure("away", 30_000);
    fixture.give(...ids(3).map((id) => deliveryOf(id)));
    await fixture.settled();
    expect(fixture.sizes).toEqual([3]);
    expect(fixture.ended.get("e0")).toMatchObject({ type: "failed", retryAfterMs: 30_000 });
  });

  test("of events that failed before takes no new one", async () => {
    const fixture = new BatchFixture(4);
    fixture.give(deliveryOf("new"), deliveryOf("again", { attempt: 2 }), deliveryOf("newer"));
    await fixture.settled();
    expect(fixture.batches.map((batch) => batch.map(({ id }) => id))).toEqual([["again"], ["new", "newer"]]);
  });

  test("that waits is given back when it is recalled", async () => {
    const fixture = new BatchFixture(4);
    fixture.give(deliveryOf("a"));
    fixture.recall();
    await fixture.settled();
    expect(fixture.ended.get("a")).toEqual({ type: "unbegun" });
    expect(fixture.batches).toEqual([]);
  });

  test("that is given back amid its halves is as one that was interrupted: its handler had begun", async () => {
    const fixture = new BatchFixture(2);
    fixture.answer = (batch) => (batch.length === 2 ? failure() : { type: "unbegun" });
    fixture.give(deliveryOf("a"), deliveryOf("b"));
    await fixture.settled();
    expect([...fixture.ended.values()].map(({ type }) => type)).toEqual(["interrupted", "interrupted"]);
  });
});

test("whatever is poison fails alone, nothing else fails, order holds, and halving ends after 2n - 1 runs", async () => {
  const worlds = fc.record({
    count: fc.integer({ min: 1, max: 70 }),
    maxSize: fc.integer({ min: 2, max: 32 }),
    concurrency: fc.integer({ min: 1, max: 3 }),
    poison: fc.uniqueArray(fc.nat(69), { maxLength: 8 }),
    end: fc.constantFrom<Outcome["type"]>("failed", "permanent"),
  });
  await fc.assert(
    fc.asyncProperty(worlds, async ({ count, maxSize, concurrency, poison, end }) => {
      const fixture = new BatchFixture(maxSize, 10, concurrency);
      const bad = new Set(poison.map((index) => `e${index}`));
      const { error } = failure() as Extract<Outcome, { type: "failed" }>;
      const refused: Outcome = { type: end as "failed" | "permanent", error, durationMs: 1 };
      let open = 0;
      fixture.answer = async (batch) => {
        expect(++open).toBeLessThanOrEqual(concurrency);
        await settle();
        open--;
        return batch.some((id) => bad.has(id)) ? refused : done;
      };
      fixture.give(...ids(count).map((id) => deliveryOf(id)));
      await fixture.settled();
      const seen = new Set<string>();
      for (const batch of fixture.batches) {
        const places = batch.map(({ id }) => Number(id.slice(1)));
        expect(places).toEqual([...places].sort((a, b) => a - b));
        // A redelivered event must be flagged.
        for (const { id, redelivered, object } of batch) {
          expect([redelivered, object.metadata.name]).toEqual([seen.has(id), id]);
          seen.add(id);
        }
      }
      for (const id of ids(count)) expect(fixture.ended.get(id)?.type).toBe(bad.has(id) ? end : "ok");
      expect(fixture.sizes.length).toBeLessThanOrEqual(2 * count - 1);
      if (bad.size === 0) expect(fixture.sizes).toHaveLength(Math.ceil(count / maxSize));
    }),
    { numRuns: 60 },
  );
});
