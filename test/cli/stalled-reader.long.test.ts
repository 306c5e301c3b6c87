import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { ClusterProcess, freePort } from "../tools/watchfire-process.ts";
import { define, manifest } from "./session.ts";

const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");

const functions = 8;
/**
 * The number of functions, and of lines per function: 10 MiB in all, of which each function's rate limit passes slightly more
 * than 1 MiB.
 */
const [events, linesOfOne] = [20, 55];

const place = mkdtempSync(join(tmpdir(), "watchfire-stalled-"));
let cluster: ClusterProcess;
beforeAll(async () => {
  cluster = await ClusterProcess.start(place);
});
afterAll(async () => {
  await cluster.stop();
  rmSync(place, { recursive: true, force: true });
});

const handler = `export default async ({ object }, ctx) => {
  for (let n = 0; n < ${linesOfOne}; n++) ctx.log.info("x".repeat(1000), { n });
  const at = Number(object.data.at) + 1;
  if (at < ${events}) await ctx.kube.patch({ apiVersion: "v1", kind: "ConfigMap", namespace: "default", name: object.metadata.name }, { data: { at: String(at) } });
};`;
const grant = `  permissions: [{ apiGroups: [""], resources: [configmaps], verbs: [patch], namespaces: [default] }]`;

interface Line {
  readonly msg: string;
  readonly level: string;
  readonly lines?: number;
  readonly fields?: { readonly n: number };
}

/** A runtime whose output is not read, after its functions have logged more than the buffer takes. */
async function flooded(preload = "") {
  const folder = folderOf({ "preload.mjs": preload });
  const run = `run-${process.hrtime.bigint()}`;
  for (let no = 0; no < functions; no++) {
    const watch = `{ apiVersion: v1, kind: ConfigMap, namespaceSelector: { matchNames: [default] }, fieldSelector: metadata.name=${run}-${no} }`;
    define(join(folder, "functions"), `flood-${no}`, handler, manifest(`flood-${no}`, grant, watch));
  }
  const address = `127.0.0.1:${await freePort()}`;
  const folders = ["--functions", join(folder, "functions"), "--data", join(folder, "data")];
  const args = ["start", ...folders, "--kubeconfig", cluster.kubeconfig, "--listen", address];
  const child: ChildProcess = spawn(process.execPath, [bin, ...args], {
    env: { PATH: process.env.PATH, NODE_OPTIONS: `--import ${join(folder, "preload.mjs")}` },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const over = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await over;
  });
  const read = async (path: string) => (await fetch(`http://${address}${path}`)).text();
  await until("it is ready", 30_000, async () => (await fetch(`http://${address}/readyz`)).status === 200);

  const waits: number[] = [];
  /** The sum of a metric's series whose labels match. */
  const count = async (name: string, labels: RegExp) => {
    const began = performance.now();
    await read("/livez");
    waits.push(performance.now() - began);
    return (await read("/metrics"))
      .split("\n")
      .filter((line) => line.startsWith(`watchfire_${name}{`) && labels.test(line))
      .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  };
  for (let no = 0; no < functions; no++) {
    const data = { metadata: { name: `${run}-${no}` }, data: { at: "0" } };
    await cluster.client.post("/api/v1/namespaces/default/configmaps", data);
  }
  await until("all events are handled", 60_000, async () => {
    return (await count("events_total", /outcome="ok"/)) === functions * events;
  });
  const dropped = {
    rate: await count("log_lines_dropped_total", /reason="rate"/),
    reader: await count("log_lines_dropped_total", /reason="reader"/),
  };
  expect(dropped.reader).toBeGreaterThan(0);

  const { stdout } = child;
  if (!stdout) throw new Error("it has no output");
  let text = "";
  /** Reads the output from now on. */
  const awake = () => void stdout.setEncoding("utf8").on("data", (more: string) => (text += more));
  const lines = () =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  /** The number of lines that were reported as dropped, and of the handlers' lines that were written. */
  const told = () => lines().reduce((sum, { lines: each = 0, msg }) => sum + (/reader/.test(msg) ? each : 0), 0);
  const written = () => lines().filter(({ fields }) => fields !== undefined).length;
  return { child, over, waits, dropped, awake, told, written, text: () => text };
}

test("a reader that stands still holds nothing up, and once awake finds whole lines and the number of those it missed", {
  timeout: 120_000,
}, async () => {
  const { waits, dropped, awake, told, written, text } = await flooded();
  // With eight functions at full speed on two cores. If the request waited for the reader, it would never be answered.
  expect(waits.toSorted((a, b) => a - b)[waits.length >> 1]).toBeLessThan(300);
  expect(Math.max(...waits)).toBeLessThan(2000);
  awake();
  await until("it says what was dropped", 20_000, async () => told() >= dropped.reader);
  expect(text().endsWith("\n")).toBe(true);
  expect(told()).toBe(dropped.reader);
  expect(written() + dropped.rate + dropped.reader).toBe(functions * events * linesOfOne);
});

test("where the reader stands still a SIGTERM ends the process within seconds, and tears no line", {
  timeout: 120_000,
}, async () => {
  const { child, over, awake, text } = await flooded();
  const began = performance.now();
  // Node discards unread output when a child ends.
  child.once("exit", awake);
  child.kill("SIGTERM");
  expect(await over).toEqual([0, null]);
  // The drain, which has nothing to wait for, and 2 s for the reader.
  expect(performance.now() - began).toBeLessThan(6000);
  if (child.stdout && !child.stdout.readableEnded) await once(child.stdout, "end");
  expect([text().includes('"msg":"started"'), text().endsWith("\n")]).toEqual([true, true]);
});

test("a fatal error leaves all that waited to a reader that wakes in time", { timeout: 120_000 }, async () => {
  const throws = `process.on("SIGUSR2", () => { throw new Error("crash"); });`;
  const { child, over, dropped, awake, told, written } = await flooded(throws);
  child.kill("SIGUSR2");
  awake();
  expect(await over).toEqual([1, null]);
  if (child.stdout && !child.stdout.readableEnded) await once(child.stdout, "end");
  expect(told()).toBe(dropped.reader);
  expect(written() + dropped.rate + dropped.reader).toBe(functions * events * linesOfOne);
});
