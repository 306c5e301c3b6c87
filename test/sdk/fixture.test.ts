import { defineHandler, type Handler, PermanentError } from "@watchfire/sdk";
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
