import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { watchfire } from "../cli/run.ts";
import { natsProgram } from "../tools/assets.ts";
import { folderOf } from "../tools/folder.ts";
import { startNats } from "../tools/nats.ts";
import { until } from "../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../tools/watchfire-process.ts";

const functions = join(import.meta.dirname, "../audit/functions");

/** A cluster, and runtimes that share one data folder. */
async function world() {
  const folder = folderOf({});
  const cluster = await ClusterProcess.start(folder);
  onTestFinished(() => cluster.stop());
  const data = join(folder, "data");
  const start = async (...more: string[]) => {
    const runtime = new RuntimeProcess(folder, cluster.kubeconfig, functions, [...more, "--namespace", "default"]);
    await runtime.start();
    onTestFinished(() => runtime.kill());
    return runtime;
  };
  const address = () => readFileSync(join(data, "url"), "utf8");
  return { cluster, data, start, address };
}

test.skipIf(!natsProgram)(
  "a second replica of a fleet on one data folder is refused, and commands find the first one",
  async () => {
    const { cluster, data, start, address } = await world();
    const { url } = await startNats();
    const fleet = ["--store", "nats", "--nats", url, "--slots", "1"];
    const first = await start(...fleet);
    const before = address();
    const at = ["--functions", functions, "--data", data, "--kubeconfig", cluster.kubeconfig, "--namespace", "default"];
    const second = await watchfire(["start", ...at, ...fleet]);
    expect(second).toMatchObject({ status: 1, stderr: expect.stringContaining(`WF_CHECKPOINT_LOCKED ${data}`) });
    expect(address()).toBe(before);
    expect((await watchfire(["slots", "--data", data])).status).toBe(0);
    await first.kill();
    await start(...fleet);
    expect(address()).not.toBe(before);
  },
  120_000,
);

test("a standby on the data folder of the active runtime leaves it its address, and leaves its own once it takes over", async () => {
  const { start, address } = await world();
  const first = await start("--leader-elect");
  const before = address();
  await start("--leader-elect");
  expect(address()).toBe(before);
  await first.kill();
  await until("the standby has taken over", 60_000, async () => address() !== before);
}, 120_000);
