import { describe, expect, it } from "vitest";
import { fixtureForTest } from "./fixture.ts";

const odd = "9007199254740993";
const even = "9007199254740992";
const account = (id: string, more = "") =>
  `{"apiVersion":"big.example/v1","kind":"Account","metadata":{"name":"a","namespace":"n"},"count":${id},"spec":{"id":${id}${more}}}`;
const ref = `{ apiVersion: "big.example/v1", kind: "Account", name: "a", namespace: "n" }`;

/** Runs a handler of an Account whose id was changed. Returns what it sent, and the outcome of its event. */
async function sent(code: string, answer = account(odd)) {
  const fixture = fixtureForTest();
  fixture.answer = () => ({ ok: true, json: answer });
  await fixture.load("f", code);
  const body = Buffer.from(account(odd));
  const metadata = { at: body.indexOf('{"name"'), end: body.indexOf(',"count"') };
  const outcome = await fixture.run("f", { body, metadata, oldBody: Buffer.from(account(even)) });
  return { outcome, texts: fixture.calls.map(({ text }) => text) };
}

const handler = (body: string) =>
  `export default async (event, ctx) => { const { object, oldObject } = event; ${body} };`;

describe("whole numbers that JavaScript cannot hold", () => {
  it.each([
    ["the event's object", "await ctx.kube.update(object)", `{"object":${account(odd)}}`],
    ["its old object", "await ctx.kube.update(oldObject)", `{"object":${account(even)}}`],
    ["an object that was got", `await ctx.kube.apply(await ctx.kube.get(${ref}))`, `{"object":${account(odd)}}`],
    [
      "an object of retryOnConflict",
      `await ctx.kube.retryOnConflict(${ref}, (x) => { x.spec.seen = true; })`,
      `{"object":${account(odd, ',"seen":true')}}`,
    ],
    [
      "a BigInt in a patch",
      `await ctx.kube.patch(${ref}, { spec: { id: 9007199254740995n } })`,
      `{"ref":${ref.replace(/(\w+):/g, '"$1":').replaceAll(" ", "")},"patch":{"spec":{"id":9007199254740995}}}`,
    ],
  ])("leave a handler as they came into it, in %s", async (_, call, text) => {
    const { outcome, texts } = await sent(handler(`object.kind; ${call};`));
    expect(outcome).toMatchObject({ type: "ok" });
    expect(texts.at(-1)).toBe(text);
  });

  it("leave it so in the cache, in each page of a list, and in a response of fetch", async () => {
    const code = handler(`
      const { items } = await ctx.kube.list({ apiVersion: "big.example/v1", kind: "Account" });
      await ctx.kube.update(items[0]);
      await ctx.kube.update(ctx.cache.get(${ref}));
      const response = await ctx.fetch("https://example.com");
      await ctx.kube.update(await response.json());`);
    const fixture = fixtureForTest();
    const body = Buffer.from(account(odd)).toString("base64");
    const answers: Record<string, string> = {
      "kube.list": `{"items":[{"count":${odd}},{"count":${even}}],"metadata":{}}`,
      "cache.get": account(odd),
      fetch: `{"url":"","redirected":false,"status":200,"statusText":"","headers":[],"body":"${body}"}`,
    };
    fixture.answer = ({ operation }) => ({ ok: true, json: answers[operation] ?? "{}" });
    await fixture.load("f", code);
    expect(await fixture.run("f")).toMatchObject({ type: "ok" });
    const updates = fixture.calls.filter(({ operation }) => operation === "kube.update").map(({ text }) => text);
    expect(updates).toEqual([
      `{"object":{"count":${odd},"apiVersion":"big.example/v1","kind":"Account"}}`,
      `{"object":${account(odd)}}`,
      `{"object":${account(odd)}}`,
    ]);
  });

  it("leave it so from a batch, and from an object of a key", async () => {
    const fixture = fixtureForTest();
    await fixture.load("b", `export default async (events, ctx) => { await ctx.kube.update(events[1].object); };`);
    await fixture.load("k", `export default async ({ object }, ctx) => { await ctx.kube.update(object); };`, {
      mode: "Reconcile",
    });
    const body = Buffer.from(`[{"id":"1","object":${account(even)}},{"id":"2","object":${account(odd)}}]`);
    await fixture.run("b", { body, batch: ["1", "2"] });
    await fixture.run("k", { body: Buffer.from(account(odd)), causes: [{ type: "Modified", name: "a" }] });
    expect(fixture.calls.map(({ text }) => text)).toEqual(Array(2).fill(`{"object":${account(odd)}}`));
  });

  it("are refused where they may be rounded, before anything is sent, and the handler may catch it", async () => {
    const { outcome, texts } = await sent(handler("object.spec.id *= 3; await ctx.kube.update(object);"));
    expect(texts).toEqual([]);
    expect(outcome).toMatchObject({
      error: {
        name: "InvalidError",
        message: expect.stringContaining("WF_ACCESS_INEXACT_NUMBER: kube.update: object.spec.id"),
      },
    });
    const caught = handler(`
      await ctx.kube.update({ ...object, spec: { ...oldObject.spec } }).catch(() => ctx.kube.update(object));`);
    expect((await sent(caught)).texts).toEqual([`{"object":${account(odd)}}`]);
  });

  it("are read exactly by wholeNumber", async () => {
    const code = `import { wholeNumber } from "@watchfire/sdk";
      export default async ({ object }, ctx) => {
        await ctx.kube.patch(${ref}, { spec: { next: wholeNumber(object.spec, "id") + 1n } });
      };`;
    expect((await sent(code)).texts[0]).toContain('{"spec":{"next":9007199254740994}}');
  });

  it("leave it as they came whatever it has made of the language", async () => {
    const meddling = `
      const no = () => { throw new Error("meddled with"); };
      JSON.parse = JSON.stringify = JSON.rawJSON = Reflect.defineProperty = Reflect.getOwnPropertyDescriptor = no;
      RegExp.prototype.exec = RegExp.prototype.test = Number.isInteger = Number.isSafeInteger = Object.create = no;
      for (const name of ["get", "set", "value", "source", "0", "numbers"])
        Object.defineProperty(Object.prototype, name, { __proto__: null, get: no, set: no, configurable: true });
      await ctx.kube.update(object);`;
    const { outcome, texts } = await sent(handler(meddling));
    expect(outcome).toMatchObject({ type: "ok" });
    expect(texts).toEqual([`{"object":${account(odd)}}`]);
  });
});
