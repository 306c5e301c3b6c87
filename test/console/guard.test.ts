import { expect, test } from "vitest";
import { tokenCaller } from "../../runtime/control/access/caller.ts";
import { servedConsole } from "./served.ts";

const write = { method: "POST", body: {} };

test("without a token or a session, and with another's, nothing is answered", async () => {
  const { ask } = await servedConsole();
  for (const path of ["overview", "functions", "runs", "errors", "dead-letters", "sources", "events", "openapi.json"]) {
    expect((await ask(`/api/${path}`)).status, path).toBe(401);
  }
  expect((await ask("/api/runs", { headers: { authorization: "Bearer another" } })).status).toBe(401);
  expect((await ask("/api/functions/greet/pause", write)).status).toBe(401);
});

test("the token opens everything, for programs", async () => {
  const { ask, bearing } = await servedConsole();
  expect((await ask("/api/runs", { headers: bearing })).status).toBe(200);
  expect((await ask("/api/functions/greet/pause", { ...write, headers: bearing })).status).toBe(200);
});

test("a link logs in once; its cookie is kept from scripts and from other sites", async () => {
  const { ask, access, origin } = await servedConsole();
  const asked = { method: "POST", headers: { origin }, body: { code: access.newCode(tokenCaller) } };
  const answer = await ask("/api/session", asked);
  expect(answer.headers["set-cookie"]).toMatch(/^watchfire-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  const again = await ask("/api/session", asked);
  expect(again.status).toBe(401);
  expect(again.body).toContain("was used already");
  expect(again.headers["set-cookie"]).toBeUndefined();
});

test("a session reads and writes with its cookie and its proof, and with one of them does neither", async () => {
  const { ask, login } = await servedConsole();
  const { cookie, origin, ...proof } = await login();
  const pause = (headers: Record<string, string>) => ask("/api/functions/greet/pause", { ...write, headers });
  expect((await ask("/api/runs", { headers: { cookie, ...proof } })).status).toBe(200);
  expect((await pause({ cookie, origin, ...proof })).status).toBe(200);
  expect((await ask("/api/runs", { headers: { cookie } })).status).toBe(401);
  expect((await ask("/api/runs", { headers: { ...proof } })).status).toBe(401);
  expect((await pause({ cookie, origin })).status).toBe(401);
});

test("a write by a session that names no Origin is refused", async () => {
  const { ask, login } = await servedConsole();
  const { origin, ...session } = await login();
  expect((await ask("/api/functions/greet/pause", { ...write, headers: session })).status).toBe(403);
});

test("a page of another origin is refused, be it of another port of this machine", async () => {
  const { ask, login, access, bearing } = await servedConsole();
  const session = await login();
  for (const origin of ["http://127.0.0.1:1", "https://example.org", "null"]) {
    const headers = { ...session, origin };
    expect((await ask("/api/functions/greet/pause", { ...write, headers })).status, origin).toBe(403);
    expect((await ask("/api/runs", { headers })).status, origin).toBe(403);
    expect((await ask("/api/runs", { headers: { ...bearing, origin } })).status, origin).toBe(403);
    const body = { code: access.newCode(tokenCaller) };
    expect((await ask("/api/session", { method: "POST", headers: { origin }, body })).status, origin).toBe(403);
  }
  expect((await ask("/api/runs", { headers: { ...session, "sec-fetch-site": "same-site" } })).status).toBe(403);
});

test("a name that is made to lead to this machine is refused", async () => {
  const { ask, login, bearing } = await servedConsole();
  const session = await login();
  for (const host of ["evil.example:9464", "127.0.0.1.evil.example", "watchfire"]) {
    expect((await ask("/api/runs", { headers: { ...session, host } })).status, host).toBe(403);
    expect((await ask("/api/runs", { headers: { ...bearing, host } })).status, host).toBe(403);
    expect((await ask("/", { headers: { accept: "text/html", host } })).status, host).toBe(403);
  }
});

test("a session makes no login codes, and ends when it logs out", async () => {
  const { ask, login, bearing } = await servedConsole();
  const session = await login();
  expect((await ask("/api/login-codes", { ...write, headers: session })).status).toBe(401);
  expect((await ask("/api/login-codes", { ...write, headers: bearing })).status).toBe(200);
  expect((await ask("/api/session", { method: "DELETE", headers: session })).status).toBe(200);
  expect((await ask("/api/runs", { headers: session })).status).toBe(401);
});

test("each write is an audit line with who, what and how it ended; so is one that is refused, once a second", async () => {
  const { ask, login, audit } = await servedConsole();
  const headers = { ...(await login()), "user-agent": "test" };
  await ask("/api/functions/greet/pause", { ...write, headers });
  await ask("/api/dead-letters/drop", { method: "POST", headers, body: { ids: ["1"] } });
  await ask("/api/dead-letters/drop", { method: "POST", headers, body: { ids: ["7"] } });
  for (let count = 0; count < 3; count++) await ask("/api/functions/greet/pause", write);
  const by = { who: "the data folder's token", session: 1, from: "127.0.0.1 test", message: "audit" };
  const refused = { who: "unknown", verb: "pause", result: "refused: WF_OBSERVE_TOKEN", from: "127.0.0.1" };
  const one = (id: string) => ({ letters: { count: 1, ids: [id] } });
  expect(audit).toEqual([
    { who: "the data folder's token", session: 1, from: "127.0.0.1", message: "console login" },
    { ...by, verb: "pause", function: "greet", asked: {}, result: "done" },
    { ...by, verb: "drop", ...one("1"), functions: ["greet"], result: "done" },
    { ...by, verb: "drop", ...one("7"), functions: [], result: "WF_CHECKPOINT_NO_DEAD_LETTER" },
    { ...refused, message: "audit" },
  ]);
});

test("pages hold no data, run nothing inline, and are the same for everybody", async () => {
  const { ask, login } = await servedConsole();
  const headers = { accept: "text/html,*/*" };
  const page = await ask("/runs?function=greet", { headers });
  expect(page.status).toBe(200);
  expect(page.headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
  expect(page.headers["content-security-policy"]).not.toContain("unsafe");
  expect(page.headers).toMatchObject({ "x-frame-options": "DENY", "x-content-type-options": "nosniff" });
  expect(page.body).not.toMatch(/<script>|<style|style=|onclick=/);
  expect((await ask("/dead-letters", { headers: { ...headers, ...(await login()) } })).body).toBe(page.body);
});

test("an older path answers a program as before, whatever page has its URL", async () => {
  const { ask, bearing } = await servedConsole();
  expect((await ask("/dead-letters", { headers: { ...bearing, accept: "*/*" } })).body).toMatch(/^\[\{"id":"1"/);
  expect((await ask("/dead-letters")).status).toBe(401);
  expect((await ask("/", { headers: { accept: "*/*" } })).status).toBe(404);
  expect((await ask("/status", { headers: { accept: "text/html" } })).body).toMatch(/^\{"role"/);
});

test("answers are not kept in a cache", async () => {
  const { ask, bearing } = await servedConsole();
  expect((await ask("/api/runs", { headers: bearing })).headers["cache-control"]).toBe("no-store");
  expect((await ask("/", { headers: { accept: "text/html" } })).headers["cache-control"]).toBe("no-store");
});
