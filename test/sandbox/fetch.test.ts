import { expect, test } from "vitest";
import type { FetchArguments } from "../../sdk/operations.ts";
import { fixtureForTest } from "./fixture.ts";

const url = "https://hooks.example.com/";

/** Requests in the forms that a handler may use. */
const inits = {
  "a text": `{ method: "POST", body: "a=1" }`,
  "a form": `{ method: "POST", body: new URLSearchParams({ a: "1" }) }`,
  bytes: `{ method: "POST", body: new TextEncoder().encode("a=1") }`,
  "a buffer": `{ method: "POST", body: new TextEncoder().encode("a=1").buffer }`,
  "no body": `{ method: "POST" }`,
  "a text of which the handler says what it is": `{ method: "POST", body: "{}", headers: { "Content-TYPE": "a/b" } }`,
};

test("a request says of its body what the standard's does", async () => {
  const fixture = fixtureForTest();
  const headers = [["set-cookie", "a=1"]];
  const result = { url, redirected: false, status: 200, statusText: "OK", headers, body: "b2s=" };
  fixture.answer = () => ({ ok: true, json: JSON.stringify(result) });
  const fetches = Object.values(inits).map((init) => `await ctx.fetch(${JSON.stringify(url)}, ${init});`);
  await fixture.load("f", `export default async (event, ctx) => {\n${fetches.join("\n")}\n};`);
  expect((await fixture.run("f")).type).toBe("ok");
  const asked = fixture.calls.map(({ args }) => args as FetchArguments);
  for (const [index, [what, init]] of Object.entries(inits).entries()) {
    const { headers: sent = [], body = "" } = asked[index] ?? expect.fail(`no request with ${what}`);
    const standard = new Request(url, new Function(`return ${init}`)());
    const ours = sent.map(([name, value]) => [name.toLowerCase(), value]);
    expect([what, ...ours]).toEqual([what, ...standard.headers]);
    expect(Buffer.from(body, "base64").toString()).toBe(await standard.text());
  }
});

test("a handler reads each cookie of an answer alone, and any other header in one text", async () => {
  const fixture = fixtureForTest();
  const headers = [
    ["set-cookie", "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT"],
    ["set-cookie", "b=caf\u00e9"],
    ["x-dup", "1"],
    ["x-dup", "2"],
  ];
  const result = { url, redirected: false, status: 200, statusText: "OK", headers, body: "" };
  fixture.answer = () => ({ ok: true, json: JSON.stringify(result) });
  await fixture.load(
    "f",
    `export default async (event, ctx) => {
      const { headers } = await ctx.fetch(${JSON.stringify(url)});
      ctx.log.info("read", { cookies: headers.getSetCookie(), dup: headers.get("X-Dup"), all: [...headers].length });
    };`,
  );
  expect((await fixture.run("f")).type).toBe("ok");
  expect(fixture.logs.map(({ fields }) => fields)).toEqual([
    { cookies: headers.slice(0, 2).map(([, value]) => value), dup: "1, 2", all: 3 },
  ]);
});
