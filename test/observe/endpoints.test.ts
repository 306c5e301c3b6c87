import { request } from "node:http";
import { connect } from "node:net";
import { hostname } from "node:os";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { openRuntime } from "../../runtime/cli/dead-letter-client.ts";
import { emptyBatch, type NewDeadLetter } from "../../runtime/journal/batch.ts";
import { DeadLetters } from "../../runtime/journal/dead-letters.ts";
import type { ControlApi } from "../../runtime/observe/control-api.ts";
import { deadLetterRowSchema, deadLetterSchema } from "../../runtime/observe/dead-letter.ts";
import { type Endpoints, type Inspection, serveEndpoints } from "../../runtime/observe/endpoints.ts";
import type { ExplainQuestion } from "../../runtime/observe/explanation.ts";
import { gateOf } from "../control/access/gate-of.ts";
import { MemoryStore } from "../journal/memory-store.ts";

let store = new MemoryStore();

const token = "the-token";
const bearing = { authorization: `Bearer ${token}` };

const post = (url: string, body: unknown): Promise<Response> =>
  fetch(url, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { ...bearing, "content-type": "application/json" },
  });

const letter: NewDeadLetter = {
  view: 1,
  function: "greet",
  trigger: "settings",
  namespace: "default",
  name: "ada",
  uid: "u",
  resourceVersion: resourceVersion("12"),
  type: "Added",
  id: "u/12/Added",
  flags: {},
  body: Buffer.from('{"data":{"greeting":"hello"}}'),
  oldBody: undefined,
  deletedBy: resourceVersion(""),
  receivedAt: 0,
  apiVersion: "v1",
  kind: "ConfigMap",
  attempts: 5,
  error: { name: "TypeError", message: "no", stack: "" },
  failedAt: 0,
};

const inspection = (over: Partial<Inspection> = {}): Inspection => ({
  live: () => true,
  ready: () => true,
  obstacle: () => undefined,
  unsaved: () => undefined,
  clock: systemClock,
  status: () => ({ functions: [] }),
  metrics: async () => "watchfire_up 1\n",
  gate: gateOf({ token }).admit,
  deadLetters: () => new DeadLetters(store),
  explain: async () => Promise.reject(new Error("not asked")),
  support: async () => Promise.reject(new Error("not asked")),
  functions: {} as ControlApi,
  ...over,
});

test("a port that is taken is stepped over as far as is allowed, and is told where nothing is", async () => {
  const taken = await serveEndpoints("127.0.0.1", 0, inspection());
  onTestFinished(() => taken.close());
  const next = await serveEndpoints("127.0.0.1", taken.port, inspection(), 20);
  onTestFinished(() => next.close());
  expect(next.port).toBeGreaterThan(taken.port);
  expect(next.port).toBeLessThanOrEqual(taken.port + 20);
  await expect(serveEndpoints("127.0.0.1", taken.port, inspection())).rejects.toThrow("WF_OBSERVE_LISTEN");
});

describe("the endpoints", () => {
  let endpoints: Endpoints | undefined;
  afterEach(async () => {
    await endpoints?.close();
    endpoints = undefined;
  });
  beforeEach(async () => {
    store = new MemoryStore();
    await store.commit({ ...emptyBatch, deadLetters: [letter] });
  });
  const ask = async (path: string, init?: RequestInit, over?: Partial<Inspection>): Promise<Response> => {
    endpoints = await serveEndpoints("127.0.0.1", 0, inspection(over));
    return fetch(`${endpoints.url}${path}`, { ...init, headers: { ...bearing, ...init?.headers } });
  };

  it("readiness is 503 until every function that can run has caught up", async () => {
    expect((await ask("/readyz", {}, { ready: () => false })).status).toBe(503);
  });

  it("readiness that is refused says why, in one line", async () => {
    const why = "WF_RUNTIME_INTERNAL: one\n  two";
    const response = await ask("/readyz", {}, { ready: () => false, obstacle: () => why });
    expect(await response.text()).toBe("not ready: WF_RUNTIME_INTERNAL: one two\n");
  });

  it("a body larger than any that is asked for is refused before anything reads it", async () => {
    const body = JSON.stringify({ ids: ["x".repeat(300_000)] });
    expect((await ask("/dead-letters/replay", { method: "POST", body })).status).toBe(413);
  });

  it("liveness does not depend on readiness", async () => {
    expect((await ask("/livez", {}, { ready: () => false })).status).toBe(200);
  });

  it("metrics are Prometheus text", async () => {
    const response = await ask("/metrics");
    expect(response.headers.get("content-type")).toContain("text/plain; version=0.0.4");
    expect(await response.text()).toContain("watchfire_up 1");
  });

  it("a dead letter is listed, shown with its body, and dropped by its id", async () => {
    const listed = deadLetterRowSchema.array().parse(await (await ask("/dead-letters")).json());
    expect(listed).toMatchObject([{ function: "greet", attempts: 5 }]);
    const url = `${endpoints?.url}/dead-letters`;
    const shown = deadLetterSchema.parse(await (await fetch(`${url}/${listed[0]?.id}`, { headers: bearing })).json());
    expect(shown.object).toEqual({ data: { greeting: "hello" } });
    expect((await post(`${url}/drop`, { ids: [listed[0]?.id] })).status).toBe(200);
    expect(await (await fetch(url, { headers: bearing })).json()).toEqual([]);
  });

  it("a dead letter is shown with whole numbers as they came, to a command as well", async () => {
    const object = '{"spec":{"id":9007199254740993}}';
    const [body, oldBody] = [Buffer.from(object), Buffer.from(object.replace("993", "992"))];
    await store.commit({ ...emptyBatch, deadLetters: [{ ...letter, id: "another", body, oldBody }] });
    const letters = deadLetterRowSchema.array().parse(await (await ask("/dead-letters")).json());
    const id = letters.find(({ eventId }) => eventId === "another")?.id ?? "";
    const shown = await openRuntime(endpoints?.url ?? "", token).show(id);
    expect(JSON.stringify(shown)).toContain(`"object":${body},"oldObject":${oldBody}`);
  });

  it("of several ids, one that is not there refuses them all", async () => {
    const [row] = deadLetterRowSchema.array().parse(await (await ask("/dead-letters")).json());
    const response = await post(`${endpoints?.url}/dead-letters/drop`, { ids: [row?.id, "none"] });
    expect(response.status).toBe(404);
    expect(await response.text()).toContain("WF_CHECKPOINT_NO_DEAD_LETTER");
    expect(await (await fetch(`${endpoints?.url}/dead-letters`, { headers: bearing })).json()).toHaveLength(1);
  });

  it("dead letters are listed after the one that is named, which must be an id", async () => {
    await ask("/livez");
    const url = `${endpoints?.url}/dead-letters`;
    const [row] = deadLetterRowSchema.array().parse(await (await fetch(url, { headers: bearing })).json());
    expect(await (await fetch(`${url}?after=${row?.id}`, { headers: bearing })).json()).toEqual([]);
    expect((await fetch(`${url}?after=x`, { headers: bearing })).status).toBe(400);
  });

  it("a dead letter whose function is gone is not replayed, and the answer says why", async () => {
    await ask("/livez");
    const response = await post(`${endpoints?.url}/dead-letters/replay`, { ids: ["1"] });
    expect(response.status).toBe(409);
    expect(await response.text()).toContain("WF_CHECKPOINT_LETTER_HOMELESS");
  });

  it("a call whose body is not a list of ids is refused", async () => {
    await ask("/livez");
    expect((await post(`${endpoints?.url}/dead-letters/replay`, { id: "1" })).status).toBe(400);
  });

  it.each([
    ["GET", "/dead-letters"],
    ["GET", "/dead-letters/1"],
    ["POST", "/dead-letters/replay"],
    ["POST", "/dead-letters/drop"],
    ["GET", "/explain/greet?name=a"],
  ])("%s %s is refused to whoever does not have the token, even on the same loopback", async (method, path) => {
    for (const authorization of ["", "Bearer", "Bearer the-toke", "Bearer the-token2", token]) {
      const response = await ask(path, { method, headers: { authorization } });
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ fault: { code: "WF_OBSERVE_TOKEN" } });
      await endpoints?.close();
    }
    expect(await store.deadLetters({ limit: 9 })).toHaveLength(1);
  });

  it("an object is explained by a namespace and a name that Kubernetes could have given, and by nothing else", async () => {
    const asked: object[] = [];
    const explain = async (question: ExplainQuestion) => {
      asked.push(question);
      return { function: { name: "greet", ready: true }, object: { namespace: "", name: "" }, triggers: [] };
    };
    for (const query of [
      "",
      "name=",
      "name=a/b",
      "name=..%2fb",
      "name=a%25",
      "name=a&namespace=..",
      "name=a&namespace=A",
    ]) {
      expect([query, (await ask(`/explain/greet?${query}`, {}, { explain })).status]).toEqual([query, 400]);
      await endpoints?.close();
    }
    for (const query of ["name=system:node", "name=a&namespace=team-a"]) {
      expect((await ask(`/explain/greet?${query}`, {}, { explain })).status).toBe(200);
      await endpoints?.close();
    }
    expect(asked).toEqual([
      { function: "greet", namespace: "", name: "system:node" },
      { function: "greet", namespace: "team-a", name: "a" },
    ]);
  });

  it("everything else is open to whoever reaches it", async () => {
    for (const path of ["/livez", "/readyz", "/status", "/metrics"]) {
      expect((await ask(path, { headers: { authorization: "" } })).status).toBe(200);
      await endpoints?.close();
    }
  });

  it("a web page cannot reach the dead letters, nor explanations", async () => {
    for (const path of ["/dead-letters", "/explain/greet?name=a"]) {
      expect((await ask(path, { headers: { origin: "https://example.com" } })).status).toBe(403);
      await endpoints?.close();
    }
  });

  it("an address that is taken is said with its code", async () => {
    endpoints = await serveEndpoints("127.0.0.1", 0, inspection());
    const port = Number(new URL(endpoints.url).port);
    await expect(serveEndpoints("127.0.0.1", port, inspection())).rejects.toMatchObject({ code: "WF_OBSERVE_LISTEN" });
  });

  /** The answer of a path to a request for a host. */
  const answeredAs = async (path: string, host: string, over?: Partial<Inspection>) => {
    endpoints ??= await serveEndpoints("127.0.0.1", 0, inspection(over));
    const { port } = endpoints;
    return new Promise<{ status: number; text: string }>((resolve, reject) => {
      const asked = request({ port, host: "127.0.0.1", path, headers: { host } }, async (response) => {
        resolve({ status: response.statusCode ?? 0, text: await text(response) });
      });
      asked.on("error", reject).end();
    });
  };
  const askedAs = async (path: string, host: string): Promise<number> => (await answeredAs(path, host)).status;

  it("no web page whose name leads here reads /status or /metrics", async () => {
    for (const host of ["example.com", "watchfire.dev:9464", "127.0.0.1.example.com", "svc.example.com"]) {
      expect([host, await askedAs("/status", host)]).toEqual([host, 403]);
      expect([host, await askedAs("/metrics", host)]).toEqual([host, 403]);
    }
  });

  it("no web page whose name leads here learns from /readyz why it is not ready", async () => {
    const unready = { ready: () => false, obstacle: () => "greet waits for its list" };
    const foreign = await answeredAs("/readyz", "example.com", unready);
    expect(foreign).toEqual({ status: 503, text: "not ready\n" });
    const own = await answeredAs("/readyz", "10.1.2.3:9464", unready);
    expect(own).toEqual({ status: 503, text: "not ready: greet waits for its list\n" });
  });

  it("Prometheus, probes and people read them by address, by Service, and by this machine's name", async () => {
    const names = ["127.0.0.1:9464", "10.1.2.3:9464", "[fd00::1]:9464", "localhost", "watchfire:9464", hostname()];
    for (const host of [...names, "watchfire.apps.svc", "watchfire-0.watchfire.apps.svc.cluster.local:9464"]) {
      expect([host, await askedAs("/metrics", host)]).toEqual([host, 200]);
    }
    expect(await askedAs("/livez", "whatever.example.com")).toBe(200);
  });

  it("a probe is answered though others hold 1,500 connections half open, of which few stay", async () => {
    endpoints = await serveEndpoints("127.0.0.1", 0, inspection());
    const { port, url } = endpoints;
    let open = 0;
    const sockets = Array.from({ length: 1500 }, () => {
      const socket = connect(port, "127.0.0.1", () => {
        open++;
        socket.write("GET /status HTTP/1.1\r\nHost: loc");
      });
      socket.on("error", () => undefined).on("close", () => open--);
      return socket.resume();
    });
    await expect
      .poll(() => open <= 128 && sockets.every(({ connecting }) => !connecting), { timeout: 10_000 })
      .toBe(true);
    const asked = performance.now();
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    process.stdout.write(`livez beside 1,500 half-open connections: ${(performance.now() - asked).toFixed(0)} ms\n`);
    for (const socket of sockets) socket.destroy();
  });

  it("a client that sends many requests in one piece is answered once", async () => {
    let rendered = 0;
    endpoints = await serveEndpoints(
      "127.0.0.1",
      0,
      inspection({ metrics: async () => `watchfire_up ${++rendered}\n` }),
    );
    const socket = connect(endpoints.port, "127.0.0.1");
    socket.on("error", () => undefined).resume();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20_000));
    await closed;
    expect(rendered).toBe(1);
  });

  it("a head that is too long is refused, and a request that is not sent whole ends with its connection", async () => {
    endpoints = await serveEndpoints("127.0.0.1", 0, inspection());
    const response = await fetch(`${endpoints.url}/livez`, { headers: { "x-long": "x".repeat(9000) } });
    expect(response.status).toBe(431);
    const socket = connect(endpoints.port, "127.0.0.1", () => socket.write("GET /livez HTTP/1.1\r\n"));
    await new Promise((closed) => socket.resume().once("close", closed));
  });
});
