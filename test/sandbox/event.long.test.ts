import { describe, expect, it } from "vitest";
import { fixtureForTest } from "./fixture.ts";

const object = { kind: "Pod", metadata: { name: "a" }, spec: { node: "n" } };
const body = Buffer.from(JSON.stringify(object));
/** Position of the metadata in `body`. */
const metadata = { at: body.indexOf('{"name"'), end: body.indexOf(',"spec"') };
const oldObject = { kind: "Pod", metadata: { name: "old" } };
const oldBody = Buffer.from(JSON.stringify(oldObject));

const given = [
  ["an object of which the place of its metadata is known", { body, metadata }],
  ["an object of which it is not", { body }],
  ["a previous object beside it", { body, metadata, oldBody }],
  ["a previous object beside one that is parsed as a whole", { body, oldBody }],
] as const;

describe.each(given)("an event with %s", (_, delivery) => {
  const hasOld = "oldBody" in delivery;
  const whole = {
    id: "f-1",
    trigger: "settings",
    type: "Modified",
    attempt: 1,
    redelivered: false,
    resourceVersion: "7",
    object,
    ...(hasOld && { oldObject }),
  };

  /** The value that a handler with this body logs, as JSON. */
  async function seen(code: string): Promise<unknown> {
    const fixture = fixtureForTest();
    await fixture.load("f", `export default (event, ctx) => { ${code} };`);
    expect((await fixture.run("f", delivery)).type).toBe("ok");
    return fixture.logs[0]?.message;
  }

  it("has its keys in their order, each of them enumerable and its own", async () => {
    const keys = Object.keys(whole).join();
    expect(await seen("ctx.log.info(Object.keys(event).join());")).toBe(keys);
    expect(await seen("let keys = []; for (const key in event) keys.push(key); ctx.log.info(keys.join());")).toBe(keys);
    const owned = Object.keys(whole).map(() => true);
    expect(await seen("ctx.log.info(Object.keys(event).map((key) => Object.hasOwn(event, key)).join());")).toBe(
      owned.join(),
    );
  });

  it("is the same as JSON, as a copy, and as a copy that came after a look at it", async () => {
    expect(await seen("ctx.log.info(JSON.stringify(event));")).toBe(JSON.stringify(whole));
    expect(await seen("ctx.log.info(JSON.stringify({ ...event }));")).toBe(JSON.stringify(whole));
    expect(await seen("event.object.metadata; event.object.spec; ctx.log.info(JSON.stringify({ ...event }));")).toBe(
      JSON.stringify(whole),
    );
  });

  it("gives the same object at each look, until the handler writes another there", async () => {
    expect(await seen("ctx.log.info(String(event.object === event.object));")).toBe("true");
    expect(
      await seen(
        "const { object } = event; ctx.log.info(String(event.object === object && { ...event }.object === object));",
      ),
    ).toBe("true");
    expect(await seen("event.object = 1; ctx.log.info(JSON.stringify(event.object));")).toBe("1");
    expect(await seen("ctx.log.info(String(delete event.object && !('object' in event)));")).toBe("true");
  });

  it("has an object, whatever a handler put on the prototype of all objects", async () => {
    const meddle = `for (const key of ["object", "oldObject"])
      Object.defineProperty(Object.prototype, key, { get: () => "mine", set: () => { throw new Error("set"); }, configurable: true });`;
    const fixture = fixtureForTest();
    await fixture.load("f", `${meddle} export default (event, ctx) => ctx.log.info(JSON.stringify(event));`);
    expect(await fixture.run("f", delivery)).toMatchObject({ type: "ok" });
    expect(fixture.logs[0]?.message).toBe(JSON.stringify(whole));
  });

  it("is whole for who looks at it after its end", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      "let kept; export default (event, ctx) => { if (kept) ctx.log.info(JSON.stringify(kept)); kept = event; };",
    );
    await fixture.run("f", delivery);
    for (let run = 0; run < 100; run++) await fixture.run("f", { body: Buffer.from('{"kind":"Another"}') });
    expect(fixture.logs[0]?.message).toBe(JSON.stringify(whole));
  });
});

it("an event whose metadata is no JSON fails its handler where it looks, and none that does not look", async () => {
  const fixture = fixtureForTest();
  await fixture.load("f", "export default (event) => { if (event.trigger === 'looks') event.object.metadata; };");
  const bad = { body: Buffer.from('{"metadata":{no JSON}}'), metadata: { at: 12, end: 21 } };
  expect(await fixture.run("f", bad)).toMatchObject({ type: "ok" });
  expect(await fixture.run("f", { ...bad, trigger: "looks" })).toMatchObject({
    type: "failed",
    error: { name: "SyntaxError" },
  });
});

it("an event that a handler keeps does not keep the others of its batch", async () => {
  const fixture = fixtureForTest();
  const code = `const kept = [];
    let count = 0;
    export default (event, ctx) => {
      if (++count % 32 === 0) kept.push(event);
      if (count === 2000) ctx.log.info("all", { kept: kept.length });
    };`;
  await fixture.load("f", code, { memoryMb: 16 });
  // 20 KB per event and 1.3 MB per batch: 60 batches would be several times the limit.
  const large = Buffer.from(JSON.stringify({ metadata: { name: "a" }, big: "x".repeat(20_000) }));
  const place = { body: large, metadata: { at: 12, end: 24 } };
  const outcomes = await Promise.all(
    Array.from({ length: 2000 }, () => fixture.run("f", { ...place, timeoutMs: 60_000 })),
  );
  expect(outcomes.filter(({ type }) => type !== "ok")).toEqual([]);
  expect(fixture.logs.at(-1)).toMatchObject({ message: "all", fields: { kept: 62 } });
});

it("events of one frame have their own objects each, those beyond ASCII beside the others", async () => {
  const fixture = fixtureForTest();
  await fixture.load(
    "f",
    "export default ({ object, oldObject }, ctx) => ctx.log.info(JSON.stringify([object, oldObject]));",
  );
  const nameOf = (n: number) => (n % 7 === 3 ? `pod é ${n}` : n % 11 === 5 ? `pod \u{1F525} ${n}` : `pod ${n}`);
  const sent = Array.from({ length: 200 }, (_, n) => {
    const one = { metadata: { name: nameOf(n) }, spec: "x".repeat((n * 97) % 3000) };
    return [one, n % 5 === 0 ? { was: nameOf(n + 1) } : null] as const;
  });
  const outcomes = await Promise.all(
    sent.map(([one, old]) => {
      const text = Buffer.from(JSON.stringify(one));
      const place = { at: 12, end: text.indexOf(',"spec"') };
      return fixture.run("f", {
        body: text,
        metadata: place,
        ...(old && { oldBody: Buffer.from(JSON.stringify(old)) }),
      });
    }),
  );
  expect(outcomes.filter(({ type }) => type !== "ok")).toEqual([]);
  // A line has at most 4096 characters, and these are shorter.
  expect(fixture.logs.map(({ message }) => message)).toEqual(sent.map((pair) => JSON.stringify(pair)));
});
