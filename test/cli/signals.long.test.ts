import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { bin } from "./run.ts";
import { define, manifest, Session } from "./session.ts";

/** A functions folder with a handler that works until it is interrupted. */
function busyFunctions(folder: string): string {
  const functions = join(folder, "functions");
  const code = 'export default async (_event, ctx) => { ctx.log.info("at work"); await new Promise(() => {}); };';
  define(functions, "busy", code, manifest("busy", "", "{ apiVersion: v1, kind: Namespace }"));
  return functions;
}

// From the first file that a start writes to the last.
test.each(["cluster.state.lock", "kubeconfig", "checkpoint.db"])(
  "Ctrl-C during the start, once there is %s, ends it in peace: nothing to warn of, no lock left",
  async (file) => {
    const folder = folderOf({});
    const data = join(folder, "data");
    const functions = busyFunctions(folder);
    const dev = new Session(["dev", "--functions", functions, "--data", data, "--port", "0"]);
    await until(`${file} is there`, 10_000, async () => existsSync(join(data, file)));
    dev.signal("SIGINT");
    expect(await dev.end()).toBe(0);
    expect(dev.output).not.toMatch(/source state|WF_|UND_ERR/);
    expect(existsSync(join(data, "cluster.state.lock"))).toBe(false);
  },
);

test("as process 1 it hears SIGTERM from its first line on", async ({ skip }) => {
  const namespace = ["--pid", "--fork"];
  if (spawnSync("unshare", [...namespace, "true"]).status !== 0) skip("this machine gives no PID namespace");
  const folder = folderOf({});
  const words = [process.execPath, bin, "dev", "--functions", busyFunctions(folder), "--data", join(folder, "data")];
  const outer = spawn("unshare", [...namespace, ...words, "--port", "0"], { stdio: "ignore" });
  const ended = once(outer, "exit");
  const first = () => readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, "utf8").trim();
  // The file is complete once it has its name.
  await until("it has begun", 20_000, async () => readFileSync(`/proc/${first()}/comm`, "utf8") === "watchfire\n");
  process.kill(Number(first()), "SIGTERM");
  expect([
    [0, null],
    [143, null],
  ]).toContainEqual(await ended);
});

test("Ctrl-C while `cluster` starts leaves no lock", async () => {
  const folder = folderOf({});
  const state = join(folder, "state");
  const cluster = new Session(["cluster", "--state", state, "--kubeconfig", join(folder, "kubeconfig")]);
  await until("the lock is there", 10_000, async () => existsSync(`${state}.lock`));
  cluster.signal("SIGINT");
  await cluster.end();
  expect(existsSync(`${state}.lock`)).toBe(false);
});

test("while handlers finish it is not ready; a wish to stop that comes twice at once is one wish", async () => {
  const folder = folderOf({});
  const dev = new Session(["dev", "--functions", busyFunctions(folder), "--data", join(folder, "data"), "--port", "0"]);
  const url = /http:\S+(?=\/status)/.exec(await dev.says(/Ctrl-C/))?.[0];
  await dev.says(/at work/);
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  dev.signal("SIGINT");
  dev.signal("SIGINT");
  await dev.says(/draining/);
  expect((await fetch(`${url}/readyz`)).status).toBe(503);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
});

test("a second Ctrl-C ends it at once, with one line and status 2, and leaves no lock", async () => {
  const folder = folderOf({});
  const data = join(folder, "data");
  const dev = new Session(["dev", "--functions", busyFunctions(folder), "--data", data, "--port", "0"]);
  await dev.says(/at work/);
  dev.signal("SIGINT");
  await dev.says(/draining/);
  // Waiting for handlers would take much longer.
  await until("it ends", 5_000, async () => {
    dev.signal("SIGINT");
    return dev.hasEnded;
  });
  expect(await dev.end()).toBe(2);
  expect(dev.output.match(/second signal/g)).toHaveLength(1);
  expect(dev.output).toMatch(
    /\nsecond signal: the process ends at once; interrupted events are delivered again at the next start\n$/,
  );
  expect(existsSync(join(data, "cluster.state.lock"))).toBe(false);
});
