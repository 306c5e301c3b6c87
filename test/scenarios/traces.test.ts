import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { RunsAnswer } from "../../runtime/observe/control-api.ts";
import { readTraceSettings } from "../../runtime/observe/traces/settings.ts";
import { startCollector } from "../tools/collector.ts";
import { admin, createTeam, install } from "./cluster.ts";

const secret = "hunter2-and-longer";
const history = { bytes: 8 * 2 ** 20, ageMs: 86_400_000 };

/** A service that a handler calls. */
async function startService() {
  const heard: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    heard.push(request.headers);
    response.end("hello");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { heard, port: (server.address() as AddressInfo).port };
}

/** A function that fails once and calls the service and the cluster, in a runtime with these variables. */
async function started(variables: Record<string, string>) {
  const [team, service, collector] = [await createTeam(), await startService(), await startCollector()];
  const traces = readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...variables });
  const runtime = await install(undefined, { history, traces });
  const name = `${team.name}-token`;
  await admin.post("/api/v1/namespaces/default/secrets", {
    metadata: { name },
    data: { token: Buffer.from(secret).toString("base64") },
  });
  const permissions = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"], namespaces: [team.name] }];
  await runtime.define("calls", {
    watch: team.watch(),
    spec: {
      permissions,
      env: [{ name: "TOKEN", valueFrom: { secretKeyRef: { name, key: "token" } } }],
      egress: [{ host: "127.0.0.1", ports: [service.port] }],
      delivery: { retry: { maxAttempts: 2, initialDelay: "10ms" } },
    },
    work: `
      const ref = { apiVersion: "v1", kind: "ConfigMap", namespace: event.object.metadata.namespace };
      await ctx.kube.get({ ...ref, name: "a" });
      await ctx.kube.get({ ...ref, name: ctx.env.TOKEN }).catch(() => {});
      await ctx.fetch("http://127.0.0.1:${service.port}/orders?token=" + ctx.env.TOKEN);
      ctx.log.info("at work");
      if (event.attempt === 1) throw new TypeError("cannot use " + ctx.env.TOKEN);`,
  });
  await runtime.start();
  await team.make("a");
  await runtime.hears("calls", "Added a=1 redelivered #2");
  await runtime.quiet();
  return { runtime, team, service, collector };
}

test("an event's trace has its waits, attempts and calls in their order, and its callees join it", async () => {
  const { runtime, team, service, collector } = await started({ OTEL_SERVICE_NAME: "shop" });
  await runtime.sees("the event's span has arrived", () => collector.spans.some(({ kind }) => kind === 5));
  expect(collector.refused).toEqual([]);
  expect(collector.requests[0]?.url).toBe("/v1/traces");
  expect(collector.requests[0]?.resource).toMatchObject({
    "service.name": "shop",
    "service.version": expect.any(String),
  });
  const { spans } = collector;
  const named = (name: string) =>
    spans.filter((span) => span.name === name).sort((a, b) => (a.begin < b.begin ? -1 : 1));
  const [root] = named("event calls");
  const [first, second] = named("attempt");
  expect(root).toMatchObject({
    kind: 5,
    status: {},
    attributes: { "watchfire.object": `v1/ConfigMap ${team.name}/a` },
  });
  expect(root?.parentSpanId).toBeUndefined();
  expect(first).toMatchObject({
    parentSpanId: root?.spanId,
    status: { code: 2, message: "cannot use [redacted]" },
    attributes: { "watchfire.attempt": "1", "watchfire.outcome": "failed", "error.type": "TypeError" },
  });
  expect(second).toMatchObject({ parentSpanId: root?.spanId, attributes: { "watchfire.attempt": "2" } });
  expect(named("waiting").map(({ parentSpanId }) => parentSpanId)).toEqual([root?.spanId, root?.spanId]);
  for (const attempt of [first, second]) {
    const calls = spans.filter(({ parentSpanId }) => parentSpanId === attempt?.spanId);
    expect(calls.map(({ name, kind, attributes: { "watchfire.target": target } }) => [name, kind, target])).toEqual([
      ["kube.get", 3, `ConfigMap ${team.name}/a`],
      ["kube.get", 3, `ConfigMap ${team.name}/[redacted]`],
      ["fetch", 3, `GET 127.0.0.1:${service.port}`],
    ]);
    for (const call of calls) expect(call.begin).toBeGreaterThanOrEqual(attempt?.begin ?? 0n);
  }
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  const fetches = named("fetch").map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
  expect(service.heard.map(({ traceparent }) => traceparent)).toEqual(fetches);
  const sent = runtime.transport.requests.filter(({ purpose }) => purpose === "call");
  const gets = named("kube.get").map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
  expect(sent.map(({ headers }) => headers?.traceparent)).toEqual(gets);
  expect(JSON.stringify(collector.requests)).not.toContain(secret);
  // The trace is found from the run, and from its log lines.
  const { runs } = await runtime.ask<RunsAnswer>("functions/calls/runs");
  expect(runs.map(({ trace }) => trace)).toEqual([root?.traceId, root?.traceId]);
  const lines = runtime.lines.filter(({ msg }) => msg === "at work" || msg === "attempt failed" || msg === "handled");
  expect(lines.map((line) => (line as { trace?: string }).trace)).toEqual(Array(4).fill(root?.traceId));
  await runtime.sees("all spans are counted", async () => {
    const metrics = await (await fetch(`${runtime.url}/metrics`)).text();
    return /^watchfire_trace_spans_total\{result="sent"\} 11$/m.test(metrics);
  });
});

test("an event that is not sampled has no span, and says so to its callees", async () => {
  const { runtime, service, collector } = await started({
    OTEL_TRACES_SAMPLER: "traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0",
  });
  await runtime.drain();
  expect(collector.asked()).toBe(0);
  const [first, second] = service.heard.map(({ traceparent = "" }) => traceparent.toString().split("-"));
  expect([first?.[3], second?.[3]]).toEqual(["00", "00"]);
  expect(first?.[1]).toBe(second?.[1]);
});

test("without a collector no header is sent, and no run has a trace", async () => {
  const { runtime, service } = await started({ OTEL_SDK_DISABLED: "true" });
  expect(service.heard.map(({ traceparent }) => traceparent)).toEqual([undefined, undefined]);
  const { runs } = await runtime.ask<RunsAnswer>("functions/calls/runs");
  expect(runs.map(({ trace }) => trace)).toEqual([undefined, undefined]);
});
