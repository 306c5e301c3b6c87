import fc from "fast-check";
import { expect, test } from "vitest";
import type { Delivery, Outcome } from "../../../runtime/engine/delivery/delivery.ts";
import { change, DispatchFixture, done, failure, manifest, quiet } from "../fixture.ts";

interface Told {
  readonly id: string;
  readonly attempt: number;
  readonly redelivered: boolean;
  readonly resourceVersion: string;
  readonly object: { readonly metadata: { readonly name: string } };
}

const eventsOf = ({ body }: Delivery): Told[] => JSON.parse(body.toString());
const batching = (maxSize: number, policy = {}) => manifest({ batch: { maxSize, maxWaitMs: 100 }, ...policy });

/** A dispatcher that delivers in batches, with the content of each. */
async function open(maxSize: number, policy = {}, answer: (events: readonly Told[]) => Outcome = () => done) {
  const fixture = await (await DispatchFixture.open({ manifest: batching(maxSize, policy) })).listed();
  fixture.runner.answer = (delivery) => answer(eventsOf(delivery));
  return fixture;
}

const batches = ({ runner }: DispatchFixture) => runner.deliveries.map(eventsOf);

async function pass(fixture: DispatchFixture, ms: number): Promise<void> {
  await quiet(fixture.runner);
  await fixture.clock.advance(ms);
  await quiet(fixture.runner);
}

test("a poison event ends in the dead letters, and the healthy ones of its batch do not", async () => {
  const poisoned = (events: readonly Told[]) => events.some(({ object }) => object.metadata.name === "n7");
  const fixture = await open(16, {}, (events) => (poisoned(events) ? failure("poison") : done));
  for (let index = 0; index < 16; index++) fixture.subscription.change(change("Added", `n${index}`, 11 + index));
  await pass(fixture, 120_000);
  const letters = await fixture.store.deadLetters();
  expect(letters.map(({ name, attempts, error }) => [name, attempts, error.message])).toEqual([["n7", 3, "poison"]]);
  expect(fixture.outcomes).toEqual(
    new Map([
      ["ok", 15],
      ["retry", 2],
      ["dead_letter", 1],
    ]),
  );
  // Its later attempts were alone.
  const later = batches(fixture).filter((batch) => batch.some(({ attempt }) => attempt > 1));
  expect(later.map((batch) => batch.map(({ object }) => object.metadata.name))).toEqual([["n7"], ["n7"]]);
});

test("an event that the handler names is tried again, and the others of its batch are not", async () => {
  const fixture = await open(3, {}, (events) => ({
    type: "ok",
    durationMs: 1,
    failed: events[0]?.attempt === 1 ? [1] : [],
  }));
  for (const name of ["a", "b", "c"]) fixture.subscription.change(change("Added", name, 11));
  await pass(fixture, 10_000);
  expect(
    batches(fixture).map((batch) => batch.map((event) => `${event.object.metadata.name}#${event.attempt}`)),
  ).toEqual([["a#1", "b#1", "c#1"], ["b#2"]]);
});

test("a batch is as large as it may be, whatever runs at once", async () => {
  const fixture = await open(300, { concurrency: 1 });
  for (let index = 0; index < 300; index++) fixture.subscription.change(change("Added", `n${index}`, 11 + index));
  await pass(fixture, 1_000);
  expect(batches(fixture).map(({ length }) => length)).toEqual([300]);
});

test("a kill amid a batch loses none of its events, and brings all of them again, flagged", async () => {
  const fixture = await open(8);
  fixture.runner.answer = () => undefined;
  for (const name of ["a", "b", "c"]) fixture.subscription.change(change("Added", name, 11));
  await pass(fixture, 1_000);
  const again = await fixture.restart({ manifest: batching(8) });
  again.runner.answer = () => done;
  for (const name of ["a", "b", "c"]) again.subscription.change(change("Added", name, 11));
  await pass(again, 1_000);
  const told = batches(again).at(-1) ?? [];
  expect(told.map(({ object, attempt, redelivered }) => [object.metadata.name, attempt, redelivered])).toEqual([
    ["a", 2, true],
    ["b", 2, true],
    ["c", 2, true],
  ]);
});

test("with any changes, sizes and failures, each object's events come in order, in one batch once, and none is missed", async () => {
  const worlds = fc.record({
    changes: fc.array(fc.nat(5), { minLength: 1, maxLength: 40 }),
    maxSize: fc.integer({ min: 2, max: 8 }),
    concurrency: fc.integer({ min: 1, max: 3 }),
    fails: fc.array(fc.boolean(), { maxLength: 12 }),
    partly: fc.array(fc.nat(7), { maxLength: 12 }),
  });
  await fc.assert(
    fc.asyncProperty(worlds, async ({ changes, maxSize, concurrency, fails, partly }) => {
      const [failing, partial] = [[...fails], [...partly]];
      const finished = new Map<string, number>();
      const policy = { concurrency, retry: { maxAttempts: 1000, initialDelayMs: 10, maxDelayMs: 100, factor: 1 } };
      const fixture = await open(maxSize, policy, (events) => {
        const names = events.map(({ object }) => object.metadata.name);
        expect(new Set(names).size).toBe(names.length);
        if (failing.shift()) return failure();
        const place = partial.shift();
        const failed = place !== undefined && place < events.length ? [place] : [];
        for (const [index, { object, resourceVersion }] of events.entries()) {
          if (failed.includes(index)) continue;
          expect(Number(resourceVersion)).toBeGreaterThan(finished.get(object.metadata.name) ?? 0);
          finished.set(object.metadata.name, Number(resourceVersion));
        }
        return { type: "ok", durationMs: 1, failed };
      });
      const newest = new Map<string, number>();
      for (const [index, object] of changes.entries()) {
        const name = `n${object}`;
        fixture.subscription.change(change(newest.has(name) ? "Modified" : "Added", name, 11 + index));
        newest.set(name, 11 + index);
      }
      for (let turn = 0; turn < 60; turn++) await pass(fixture, 250);
      expect(finished).toEqual(newest);
      expect(fixture.outcomes.get("ok")).toBe(changes.length);
    }),
    { numRuns: 12 },
  );
});
