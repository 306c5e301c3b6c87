import { gzipSync } from "node:zlib";
import type { Hono } from "hono";
import { expect, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { ConsoleAccess } from "../../runtime/console/access.ts";
import { apiRoutes } from "../../runtime/console/api-routes.ts";
import { consoleApp } from "../../runtime/console/app.ts";
import { consoleAssets } from "../../runtime/console/assets.ts";
import { controlRoutes } from "../../runtime/observe/control-routes.ts";
import { UnderWay } from "../../runtime/observe/under-way.ts";
import { report, servedConsole } from "./served.ts";

async function asked(path: string) {
  const { ask, bearing } = await servedConsole();
  const { status, body } = await ask(`/api/${path}`, { headers: bearing });
  return { status, json: JSON.parse(body) };
}

test("each answer is one that its schema describes", async () => {
  const { ask, bearing } = await servedConsole();
  const paths = {
    "/overview": "overview",
    "/functions": "functions",
    "/functions/{name}": "functions/greet",
    "/functions/{name}/runs": "functions/greet/runs",
    "/functions/{name}/logs": "functions/greet/logs",
    "/runs": "runs?outcome=failed&object=ada&since=2026-01-01T00:00:00Z",
    "/runs/{id}": "runs/u%2F12%2FAdded?function=greet",
    "/runs/{id}/event": "runs/u%2F12%2FAdded/event?function=greet",
    "/errors": "errors",
    "/errors/{fingerprint}": `errors/${(await asked("errors")).json.groups[0].fingerprint}`,
    "/metrics/series": "metrics/series?points=6",
    "/config": "config",
    "/dead-letters": "dead-letters",
    "/dead-letters/{id}": "dead-letters/1",
    "/sources": "sources",
  };
  for (const [path, url] of Object.entries(paths)) {
    const { status, body } = await ask(`/api/${url}`, { headers: bearing });
    expect(status, path).toBe(200);
    const route = apiRoutes.find((each) => each.method === "get" && each.path === path);
    expect(() => route?.answer.parse(JSON.parse(body)), path).not.toThrow();
  }
});

test("the description of the API has every route, and no other", async () => {
  const parts = { control: controlRoutes({} as never, new UnderWay(systemClock, () => undefined)) };
  const app: Hono = await consoleApp({
    ...parts,
    tools: {},
    access: new ConsoleAccess(systemClock),
    assets: async () => ({ script: "", style: "" }),
  } as never);
  const isRoute = ({ path, method }: { path: string; method: string }) =>
    path.startsWith("/api/") && !path.endsWith("*") && method !== "ALL" && !/openapi|events$/.test(path);
  const served = app.routes.filter(isRoute).map(({ method, path }) => `${method} ${path.replace(/\/$/, "")}`);
  const described = apiRoutes.map(
    ({ method, path }) => `${method.toUpperCase()} /api${path.replace(/\{(\w+)\}/g, ":$1")}`,
  );
  expect([...new Set(served)].sort()).toEqual(described.toSorted());
});

test("the description is OpenAPI with the questions and answers of each route", async () => {
  const { json } = await asked("openapi.json");
  expect(json.openapi).toBe("3.1.0");
  const { parameters, responses } = json.paths["/api/runs"].get;
  expect(parameters.map(({ name }: { name: string }) => name)).toContain("outcome");
  expect(parameters.every(({ required }: { required: boolean }) => !required)).toBe(true);
  expect(responses[200].content["application/json"].schema.properties.runs.type).toBe("array");
  expect(json.paths["/api/dead-letters/replay"].post.requestBody.content["application/json"].schema.required).toEqual([
    "ids",
  ]);
});

test("a question that cannot be understood is refused with the name of its part", async () => {
  const { status, json } = await asked("runs?outcome=odd");
  expect(status).toBe(400);
  expect(json.error).toMatch(/^outcome: /);
  expect((await asked("runs/x")).status).toBe(400);
  expect((await asked("dead-letters?after=x")).status).toBe(400);
  expect((await asked("nothing")).status).toBe(404);
});

test("a run has its attempts, its log lines, and its error with the line of the author's file", async () => {
  const { json } = await asked("runs/u%2F12%2FAdded?function=greet");
  expect(json).toMatchObject({
    deadLetter: "1",
    attempts: [{ attempt: 2, outcome: "failed" }],
    log: [{ level: "warn", message: "attempt failed" }],
    error: { name: "TypeError", message: "no 1" },
  });
  expect(json.error.frame).toContain("> 2 |   throw new TypeError('no 1');");
});

test("an attempt and its dead letter are one occurrence of an error", async () => {
  const { json } = await asked("errors");
  expect(json.groups).toMatchObject([
    { code: "TypeError", count: 1, deadLetters: ["1"], place: "functions/greet/handler.ts:2:9", functions: ["greet"] },
  ]);
});

test("a group of errors has its occurrences, over time and one by one", async () => {
  const [group] = (await asked("errors")).json.groups;
  const { json } = await asked(`errors/${group.fingerprint}`);
  expect(json).toMatchObject({
    group: { code: "TypeError", deadLetters: ["1"] },
    runs: [{ function: "greet", id: "u/12/Added", at: "2026-01-01T00:00:02.000Z", deadLetter: "1" }],
    plot: { from: "2026-01-01T00:00:02.000Z" },
  });
  expect(json.plot.counts.reduce((sum: number, count: number) => sum + count, 0)).toBe(1);
  expect((await asked("errors/0123456789abcdef")).status).toBe(404);
});

test("a body is shown without the values of a Secret; the commands' path has them", async () => {
  const { ask, bearing } = await servedConsole();
  const shown = await ask("/api/dead-letters/1", { headers: bearing });
  expect(shown.body).toContain('"password"');
  expect(shown.body).not.toContain("aHVudGVyMg==");
  expect((await ask("/dead-letters/1", { headers: bearing })).body).toContain("aHVudGVyMg==");
});

test("a stream says what changed, and not what it is", async () => {
  const { origin, bearing, reports } = await servedConsole();
  const response = await fetch(`${origin}/api/events`, { headers: bearing });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const until = async (part: string) => {
    while (!text.includes(part)) text += (await reader?.read())?.value ?? "";
  };
  await until("event: open");
  reports[0] = { ...report, lastEvent: "2026-01-01T00:00:03.000Z" };
  await until("event: changed");
  expect(text).toContain('data: {"topics":["functions","runs"]}');
  await reader?.cancel();
});

test("the script and the style take less than 120 KB together, as they are sent", async () => {
  const { script, style } = await consoleAssets();
  expect(script).toContain("Watchfire");
  const size = gzipSync(script).length + gzipSync(style).length;
  process.stderr.write(`the console's script and style: ${(size / 1024).toFixed(1)} KB gzipped\n`);
  expect(size).toBeLessThan(120 * 1024);
});

test("outside `watchfire dev` nothing can be applied: there are no such routes", async () => {
  const { ask, login, bearing } = await servedConsole();
  const body = { text: "kind: ConfigMap" };
  for (const headers of [bearing, await login()]) {
    expect((await ask("/api/dev/apply", { method: "POST", headers, body })).status).toBe(404);
    expect((await ask("/api/dev", { headers })).status).toBe(404);
    const session = await ask("/api/session", { headers });
    if (session.status === 200) expect(JSON.parse(session.body).isDev).toBe(false);
  }
});
