import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { ApiError } from "../../runtime/kube/api-error.ts";
import { HttpTransport } from "../../runtime/kube/http-transport.ts";
import type { Identity } from "../../runtime/kube/identity.ts";
import { ScriptedServer } from "../faults/api-server.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** An identity whose token contains the number of refreshes. */
class CountingIdentity implements Identity {
  refreshes = 0;
  async credentials() {
    return { headers: { authorization: `Bearer token-${this.refreshes}` }, tls: {} };
  }
  async refresh() {
    this.refreshes++;
  }
}

async function fixture() {
  const server = await ScriptedServer.start();
  const clock = new VirtualClock();
  const identity = new CountingIdentity();
  const transport = new HttpTransport({
    server: server.url,
    identity,
    clock,
    userAgent: "watchfire/test",
    description: "",
  });
  return {
    server,
    clock,
    identity,
    transport,
    async [Symbol.asyncDispose]() {
      await transport.close();
      await server.close();
    },
  };
}
const any = () => true;

test("twenty requests one after the other take two connections at most", async () => {
  await using it = await fixture();
  it.server.script(any, (each) => each.reply(200, "{}"));
  let most = 0;
  for (let count = 0; count < 20; count++) {
    await it.transport.json({ method: "GET", path: "/api" });
    most = Math.max(most, it.server.connections);
  }
  expect(most).toBeLessThanOrEqual(2);
});

test("each watch has a connection of its own, and other requests share theirs", async () => {
  await using it = await fixture();
  it.server.script(
    (each) => each.path === "/watch",
    (each) => each.stream(),
  );
  it.server.script(
    (each) => each.path === "/rest",
    (each) => each.reply(200, "{}"),
  );
  const watches = [];
  for (let count = 0; count < 3; count++) {
    watches.push(await it.transport.request({ method: "GET", path: "/watch", purpose: "watch" }));
    await it.transport.json({ method: "GET", path: "/rest" });
  }
  expect(it.server.connections).toBe(4);
  for (const watch of watches) watch.body.on("error", () => {}).destroy();
});

test("a 401 refreshes the credentials once and is tried again once", async () => {
  await using it = await fixture();
  it.server.script(
    any,
    (each) => each.status(401, "Unauthorized"),
    (each) => each.reply(200, '{"ok":true}'),
  );
  expect(await it.transport.json({ method: "GET", path: "/api" })).toEqual({ ok: true });
  expect(it.server.requests.map((each) => each.headers.get("authorization"))).toEqual([
    "Bearer token-0",
    "Bearer token-1",
  ]);
  it.server.script(any, (each) => each.status(401, "Unauthorized"));
  await expect(it.transport.json({ method: "GET", path: "/api" })).rejects.toMatchObject({ status: 401 });
  expect(it.server.requests).toHaveLength(4);
});

test("a request ends when its time is up, body and all, and leaves no timer", async () => {
  await using it = await fixture();
  it.server.script(any, (each) => each.stream().send('{"half":'));
  const answer = it.transport.json({ method: "GET", path: "/slow", timeoutMs: 5000 });
  const failed = expect(answer).rejects.toThrow(/timeout after 5000 ms/);
  await it.server.request(any);
  while (it.clock.timers === 0) await it.clock.advance(0);
  await it.clock.advance(5000);
  await failed;
  expect(it.clock.timers).toBe(0);
});

test("a server that is not there is said to be unreachable, with its address and why", async () => {
  const it = await fixture();
  await it.server.close();
  await expect(it.transport.json({ method: "GET", path: "/api" })).rejects.toMatchObject({
    code: "WF_KUBE_UNREACHABLE",
    message: expect.stringMatching(/no answer from http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/),
  });
  expect(it.clock.timers).toBe(0);
  await it.transport.close();
});

test("an aborted request rejects with the caller's reason", async () => {
  await using it = await fixture();
  const abort = new AbortController();
  const answer = it.transport.request({ method: "GET", path: "/api", signal: abort.signal });
  const failed = expect(answer).rejects.toThrow("no longer wanted");
  await it.server.request(any);
  abort.abort(new Error("no longer wanted"));
  await failed;
});

test("answers may be compressed, except those of watches", async () => {
  await using it = await fixture();
  it.server.script(any, (each) => {
    const bytes = gzipSync('{"ok":true}');
    each.head(200, {
      "content-type": "application/json",
      "content-encoding": "gzip",
      "content-length": String(bytes.length),
    });
    each.socket.write(bytes);
  });
  expect(await it.transport.json({ method: "GET", path: "/api" })).toEqual({ ok: true });
  expect(it.server.requests[0]?.headers.get("accept-encoding")).toBe("gzip");
});

test("an answer beyond the limit is refused, not read", async () => {
  await using it = await fixture();
  it.server.script(any, (each) => each.reply(200, JSON.stringify("x".repeat(5000))));
  await expect(it.transport.json({ method: "GET", path: "/api" }, 1000)).rejects.toMatchObject({
    code: "WF_KUBE_PROTOCOL",
  });
});

test("a redirect is not followed", async () => {
  await using it = await fixture();
  it.server.script(any, (each) => each.reply(302, "", { location: "/elsewhere" }));
  await expect(it.transport.json({ method: "GET", path: "/api" })).rejects.toThrow(ApiError);
  expect(it.server.requests.map((each) => each.path)).toEqual(["/api"]);
});

test("a request that is aborted does not wait for credentials", async () => {
  const clock = new VirtualClock();
  const identity = { credentials: () => new Promise<never>(() => {}), refresh: async () => {} };
  const transport = new HttpTransport({
    server: "http://127.0.0.1:1",
    identity,
    clock,
    userAgent: "test",
    description: "test",
  });
  const abort = new AbortController();
  const answer = transport.request({ method: "GET", path: "/api", purpose: "watch", signal: abort.signal });
  const failed = expect(answer).rejects.toThrow("no longer wanted");
  const late = expect(transport.request({ method: "GET", path: "/api", timeoutMs: 5000 })).rejects.toMatchObject({
    code: "WF_KUBE_UNREACHABLE",
  });
  await clock.advance(5000);
  abort.abort(new Error("no longer wanted"));
  await Promise.all([failed, late]);
  expect(clock.timers).toBe(0);
  await transport.close();
});

test("requests that were refused with the same credentials renew them once", async () => {
  await using it = await fixture();
  it.server.script(
    (each) => each.headers.get("authorization") === "Bearer token-0",
    (each) => each.status(401, "Unauthorized"),
  );
  it.server.script(
    (each) => each.headers.get("authorization") !== "Bearer token-0",
    (each) => each.reply(200, "{}"),
  );
  await Promise.all(Array.from({ length: 8 }, (_, index) => it.transport.json({ method: "GET", path: `/${index}` })));
  expect(new Set(it.server.requests.map((each) => each.headers.get("authorization")))).toEqual(
    new Set(["Bearer token-0", "Bearer token-1"]),
  );
});

test.runIf(process.platform === "linux")(
  "a dead peer is looked for after 15 s without traffic (Linux alone shows a timer of a socket)",
  async () => {
    await using it = await fixture();
    it.server.script(any, (each) => each.stream());
    const watch = await it.transport.request({ method: "GET", path: "/watch", purpose: "watch" });
    const port = Number(new URL(it.server.url).port).toString(16).toUpperCase().padStart(4, "0");
    // The kernel reports the active timer of the client's end of the connection (2: keep-alive) and its remaining time in
    // hundredths of a second.
    const line = readFileSync("/proc/net/tcp", "utf8")
      .split("\n")
      .find((each) => {
        const [, , peer, state] = each.trim().split(/\s+/);
        return peer === `0100007F:${port}` && state === "01"; // established: closed connections linger in the table
      });
    const [timer, when] = (line?.trim().split(/\s+/)[5] ?? "").split(":");
    expect(timer).toBe("02");
    expect(Number.parseInt(when ?? "", 16)).toBeGreaterThan(1000);
    expect(Number.parseInt(when ?? "", 16)).toBeLessThanOrEqual(1600);
    watch.body.on("error", () => {}).destroy();
  },
);

test("a request that waited for a place in the pool is not sent where the last look at it objects", async () => {
  await using it = await fixture();
  const held: { reply(status: number, body: string): void }[] = [];
  it.server.script(any, (each) => held.push(each));
  const get = (lastLook?: () => Error | undefined) =>
    it.transport.json({ method: "GET", path: "/x", ...(lastLook && { lastLook }) });
  const all = Array.from({ length: 16 }, () => get());
  await expect.poll(() => held.length).toBe(16);
  let objection: Error | undefined;
  const looked: (Error | undefined)[] = [];
  const look = () => {
    looked.push(objection);
    return objection;
  };
  const waiting = get(look);
  objection = new Error("no longer");
  held.shift()?.reply(200, "{}");
  await expect(waiting).rejects.toBe(objection);
  expect(looked).toEqual([objection]);
  objection = undefined;
  const next = get(look);
  await expect.poll(() => held.length).toBe(16);
  for (const each of held) each.reply(200, "{}");
  await Promise.all([...all, next]);
});
