import { afterEach, describe, expect, it } from "vitest";
import { type Endpoints, type Inspection, serveEndpoints } from "../../runtime/observe/endpoints.ts";

const inspection = (over: Partial<Inspection> = {}): Inspection => ({
  live: () => true,
  ready: () => true,
  status: () => ({ functions: [] }),
  metrics: async () => "watchfire_up 1\n",
  deadLetters: {
    list: async () => [{ id: "7", function: "greet" }],
    show: async (id) => (id === "7" ? { id, body: {} } : undefined),
    replay: async (id) => id === "7",
    drop: async (id) => id === "7",
  },
  ...over,
});

describe("the endpoints", () => {
  let endpoints: Endpoints | undefined;
  afterEach(() => endpoints?.close());
  const ask = async (path: string, init?: RequestInit, over?: Partial<Inspection>): Promise<Response> => {
    endpoints = await serveEndpoints("127.0.0.1", 0, inspection(over));
    return fetch(`${endpoints.url}${path}`, init);
  };

  it("readiness is 503 until every function that can run has caught up", async () => {
    expect((await ask("/readyz", {}, { ready: () => false })).status).toBe(503);
  });

  it("liveness does not depend on readiness", async () => {
    expect((await ask("/livez", {}, { ready: () => false })).status).toBe(200);
  });

  it("metrics are Prometheus text", async () => {
    const response = await ask("/metrics");
    expect(response.headers.get("content-type")).toContain("text/plain; version=0.0.4");
    expect(await response.text()).toContain("watchfire_up 1");
  });

  it("a dead letter is listed, shown, replayed and dropped by its id", async () => {
    expect(await (await ask("/dead-letters")).json()).toEqual([{ id: "7", function: "greet" }]);
    const url = `${endpoints?.url}/dead-letters`;
    expect((await fetch(`${url}/7`)).status).toBe(200);
    expect((await fetch(`${url}/7/replay`, { method: "POST" })).status).toBe(202);
    expect((await fetch(`${url}/7`, { method: "DELETE" })).status).toBe(200);
  });

  it("an id that is not there is 404, and says so", async () => {
    const response = await ask("/dead-letters/8");
    expect(response.status).toBe(404);
    expect(await response.text()).toContain("no dead letter 8");
  });

  it("a web page cannot reach the dead letters", async () => {
    expect((await ask("/dead-letters", { headers: { origin: "https://example.com" } })).status).toBe(403);
  });

  it("an address that is taken is said with its code", async () => {
    endpoints = await serveEndpoints("127.0.0.1", 0, inspection());
    const port = Number(new URL(endpoints.url).port);
    await expect(serveEndpoints("127.0.0.1", port, inspection())).rejects.toMatchObject({ code: "WF_OBSERVE_LISTEN" });
  });
});
