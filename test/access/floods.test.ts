import { describe, expect, it } from "vitest";
import { ReadingTurns } from "../../runtime/access/reading-turns.ts";
import { systemClock } from "../../runtime/base/clock.ts";
import { accessTo, apiServer, caller, errorOf, everything, manifestOf } from "./api-server.ts";

const granted = { permissions: [everything] };
const patience = { timeout: 15_000 };
/** An object with so many distinct field names, the slowest input of its length. */
const objectOf = (fields: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings", namespace: "demo" },
  data: Object.fromEntries(Array.from({ length: fields }, (_, field) => [`key-${field}`, 1])),
});

/** CPU time of this thread so far, in milliseconds. Other processes on its core do not count. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** The maximum CPU time between two turns of the event loop, until `stop`. */
function watchTurns(): { stop(): number } {
  let most = 0;
  let last = cpuMs();
  let turn = setImmediate(function look() {
    most = Math.max(most, cpuMs() - last);
    last = cpuMs();
    turn = setImmediate(look);
  });
  return {
    stop() {
      clearImmediate(turn);
      return Math.max(most, cpuMs() - last);
    },
  };
}

describe("a flood of large calls", () => {
  it("keeps the runtime from its other work no longer than a few of them take", async () => {
    const { access, attempt, received } = await accessTo({ manifest: granted });
    const args = JSON.stringify({ object: objectOf(32_000) });
    const call = () => access.call(caller, "kube.create", args, attempt.signal);
    for (let warm = 0; warm < 5; warm++) await call();
    const startedAt = cpuMs();
    for (let single = 0; single < 4; single++) await call();
    const oneMs = (cpuMs() - startedAt) / 4;
    const turns = watchTurns();
    const replies = await Promise.all(Array.from({ length: 16 }, call));
    const worst = turns.stop();
    expect(replies.every(({ ok }) => ok)).toBe(true);
    expect(received.length).toBe(25);
    expect(worst).toBeLessThan(5 * oneMs);
  });

  it("waits up to a limit of bytes, and is refused beyond it", async () => {
    const { call } = await accessTo({ manifest: granted, limits: { callsAtOnce: 1, waitingBytes: 1_000_000 } });
    const text = { ...objectOf(0), data: { text: "x".repeat(300_000) } };
    const replies = await Promise.all(Array.from({ length: 6 }, () => call("kube.create", { object: text })));
    expect(replies.filter(({ ok }) => ok).length).toBe(4);
    for (const reply of replies.filter(({ ok }) => !ok)) expect(errorOf(reply).type).toBe("TooManyRequestsError");
  });
});

describe("a function whose calls are answered slowly", () => {
  it("keeps neither the runtime nor another function from the API server", async () => {
    const { access, attempt, functions, transport, received } = await accessTo({
      manifest: granted,
      script: ({ path }) => (path.endsWith("/slow") ? "never" : { body: {} }),
    });
    functions.set("g", { ...manifestOf(granted), name: "g" });
    const get = (name: string, object: string) => {
      const ref = { apiVersion: "v1", kind: "ConfigMap", name: object, namespace: "demo" };
      return access.call({ ...caller, function: name }, "kube.get", JSON.stringify({ ref }), attempt.signal);
    };
    const slow = Promise.all(Array.from({ length: 20 }, () => get("f", "slow")));
    await expect.poll(() => received.length, patience).toBe(16);
    expect((await get("g", "settings")).ok).toBe(true);
    expect(await transport.json({ method: "GET", path: "/api/v1" })).toMatchObject({ kind: "APIResourceList" });
    attempt.abort(new Error("over"));
    await slow;
  });

  it("keeps no other function from the host that it fetches from", async () => {
    const server = await apiServer(({ path }) => (path === "/slow" ? "never" : { body: {} }));
    const port = Number(new URL(server.origin).port);
    const egress = [{ host: "127.0.0.1", ports: [port], network: "Public" as const }];
    const { access, attempt, functions } = await accessTo({ manifest: { egress } });
    functions.set("g", { ...manifestOf({ egress }), name: "g" });
    const fetch = (name: string, path: string) => {
      const args = JSON.stringify({ url: `${server.origin}${path}` });
      return access.call({ ...caller, function: name }, "fetch", args, attempt.signal);
    };
    const slow = Promise.all(Array.from({ length: 20 }, () => fetch("f", "/slow")));
    await expect.poll(() => server.received.length, patience).toBe(16);
    expect((await fetch("g", "/quick")).ok).toBe(true);
    attempt.abort(new Error("over"));
    await slow;
  });
});

describe("readings that take long", () => {
  it("are done by turns of the functions, one in a turn of the event loop", async () => {
    let now = 0;
    const turns = new ReadingTurns({ ...systemClock, monotonic: () => now });
    const order: string[] = [];
    const read = (name: string) =>
      turns.run(name, () => {
        order.push(name);
        now += 20;
      });
    const all = Promise.all([read("f"), read("f"), read("f"), read("f"), read("g"), read("g")]);
    expect(order).toEqual(["f"]);
    await all;
    expect(order).toEqual(["f", "f", "g", "f", "g", "f"]);
  });

  it("that fail leave the others theirs", async () => {
    const turns = new ReadingTurns(systemClock);
    const bad = turns.run("f", () => JSON.parse("{"));
    await expect(bad).rejects.toThrow(SyntaxError);
    expect(await turns.run("f", () => 1)).toBe(1);
  });
});
