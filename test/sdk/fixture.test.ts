import {
  defineBatchHandler,
  defineHandler,
  defineReconciler,
  type Handler,
  PermanentError,
  RetryAfter,
  requeueAfter,
  type Scheduled,
} from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { differencesOf, type FixtureCall, runFixture } from "../../sdk/testing.ts";

const metadata = { name: "a", namespace: "demo" };
const event = { type: "Added", object: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { k: "v" } } };

const copy = defineHandler<V1ConfigMap>(async ({ object }, ctx) => {
  if (object.data?.k === "bad") throw new PermanentError("no such greeting");
  await ctx.kube.get({ apiVersion: "v1", kind: "ConfigMap", name: "a", namespace: "demo" });
  const answer = await ctx.fetch("https://example.com/", { method: "POST", body: "hi" });
  const data = { ...object.data, answer: await answer.text() };
  await ctx.kube.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "b", namespace: "demo" }, data });
  await ctx.events.emit(object, { type: "Normal", reason: "Copied", message: "to b" });
}) as Handler<never>;

const responses = { "https://example.com/": { body: "yes" } };
const calls = [
  { call: "fetch", url: "https://example.com/", method: "POST", body: "hi" },
  { call: "kube.create", object: { metadata: { name: "b" }, data: { k: "v", answer: "yes" } } },
  { call: "events.emit", reason: "Copied" },
];

describe("a fixture", () => {
  it("holds where the outcome and every call are as expected; reads count where one is named", async () => {
    expect(await runFixture(copy, { event, responses, expect: { outcome: "ok", calls } })).toEqual([]);
    const read = { call: "kube.get", ref: { name: "a" } };
    expect(await runFixture(copy, { event, responses, expect: { calls: [read, ...calls] } })).toEqual([]);
  });

  it("that is an event alone expects that the handler ends well", async () => {
    expect(await runFixture(copy, event)).toEqual([]);
    const bad = { ...event, object: { ...event.object, data: { k: "bad" } } };
    const said = "permanent: PermanentError: no such greeting";
    expect(await runFixture(copy, bad)).toEqual([{ what: "outcome", expected: "ok", actual: said }]);
    expect(await runFixture(copy, { event: bad, expect: { outcome: "permanent", error: "no such" } })).toEqual([]);
  });

  it("says where a call differs, and which calls there are where their number does", async () => {
    const other = [calls[0], { call: "kube.create", object: { data: { answer: "no" } } }, calls[2]] as FixtureCall[];
    expect(await runFixture(copy, { event, responses, expect: { calls: other } })).toEqual([
      { what: "calls[1].object.data.answer", expected: '"no"', actual: '"yes"' },
    ]);
    expect(await runFixture(copy, { event, responses, expect: { calls: [] } })).toEqual([
      { what: "calls", expected: "none", actual: "fetch, kube.create, events.emit" },
    ]);
  });

  it("of a run is given to a reconciler, with the cache of its objects, and holds the time that it asks for", async () => {
    const reads = [{ apiVersion: "v1", kind: "Namespace" }];
    const level = defineReconciler<V1ConfigMap>(async ({ key, object, causes }, ctx) => {
      if (!object) throw new RetryAfter("5s", `${key.name} is gone by ${causes[0]?.type}`);
      ctx.cache.list({ apiVersion: "v1", kind: "Namespace" });
      return requeueAfter("30s");
    });
    const objects = [{ apiVersion: "v1", kind: "Namespace", metadata: { name: "x" } }];
    const run = { key: metadata, object: event.object };
    const look = [{ call: "cache.list", kind: "Namespace" }];
    expect(await runFixture(level, { run, objects, expect: { requeueAfter: "30s", calls: look } }, { reads })).toEqual(
      [],
    );
    expect(await runFixture(level, { run, expect: { requeueAfter: "1m" } }, { reads })).toEqual([
      { what: "requeueAfter", expected: "1m", actual: "30000ms" },
    ]);
    const gone = { outcome: "failed", error: "a is gone by Deleted", retryAfter: "5s" } as const;
    expect(await runFixture(level, { run: { key: metadata }, expect: gone })).toEqual([]);
    expect(await runFixture(level, { run, expect: {} })).toMatchObject([{ what: "outcome" }]);
  });

  it("of events is given as one batch, and names those that are to be tried again", async () => {
    const some = defineBatchHandler<V1ConfigMap>((events) => ({
      failed: events.flatMap(({ id, object }) => (object.data?.k === "bad" ? id : [])),
    }));
    const bad = { ...event, id: "two", object: { ...event.object, data: { k: "bad" } } };
    expect(await runFixture(some, [event, event])).toEqual([]);
    expect(await runFixture(some, { events: [event, bad], expect: { outcome: "failed", failed: ["two"] } })).toEqual(
      [],
    );
    expect(await runFixture(some, [bad])).toMatchObject([{ what: "outcome", actual: expect.stringContaining("two") }]);
  });

  it("of a schedule's time is given without an object", async () => {
    const nightly = defineHandler<Scheduled>(async ({ scheduledFor }, ctx) => {
      await ctx.fetch(`https://example.com/${scheduledFor}`);
    });
    const tick = { type: "Scheduled", scheduledFor: "2026-03-29T01:00:00Z" };
    const fetched = [{ call: "fetch", url: "https://example.com/2026-03-29T01:00:00Z" }];
    expect(await runFixture(nightly, { event: tick, expect: { calls: fetched } })).toEqual([]);
  });

  it("is met by what was done, and by any part of its objects; each leaf that is changed is one difference", () => {
    const value = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.array(fc.integer(), { maxLength: 3 }));
    const given = fc.dictionary(fc.string({ minLength: 1 }), value, { maxKeys: 5 });
    const call = given.map((args) => ({ ...args, call: "kube.apply" }) as FixtureCall);
    fc.assert(
      fc.property(fc.array(call, { maxLength: 4 }), fc.nat(), (made, at) => {
        const run = { outcome: "ok", calls: made } as const;
        expect(differencesOf({ calls: made }, run)).toEqual([]);
        expect(differencesOf({ calls: made.map(({ call }) => ({ call })) }, run)).toEqual([]);
        const index = at % Math.max(1, made.length);
        const changed = made.map((each, n) => (n === index ? { ...each, added: true } : each));
        expect(differencesOf({ calls: changed }, run)).toHaveLength(made.length === 0 ? 0 : 1);
      }),
    );
  });
});
