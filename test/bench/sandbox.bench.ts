// npm run bench:sandbox: measures the sandbox alone, with one executor. Prints events per second, the CPU time per event of the
// parent and of the executor in microseconds, and the time from a function's load to its first answer.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../runtime/base/clock.ts";
import type { Bundle } from "../../runtime/bundle/bundle.ts";
import { type Outcome, run } from "../../runtime/engine/delivery/delivery.ts";
import { Sandbox } from "../../runtime/sandbox/host/sandbox.ts";
import { bundleFunction } from "../tools/bundle.ts";

const sandbox = new Sandbox({
  executors: 1,
  clock: systemClock,
  log: { info: () => {}, warn: () => {} },
  hostCalls: { call: async () => ({ ok: true, json: `{"kind":"ConfigMap"}` }) },
  output: { log: () => {}, metric: () => {} },
});
const folder = mkdtempSync(join(tmpdir(), "watchfire-bench-"));

/** Milliseconds per tick of /proc/<pid>/stat: 100 ticks a second on every Linux that Node runs on. */
const tickMs = 10;

function executorCpuMs(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * tickMs;
}

const manifestOf = (name: string) => ({ name, resources: { memoryBytes: 64 * 2 ** 20, cpuPerEventMs: 500 } });

function bundleOf(name: string, code: string): Promise<Bundle> {
  const handler = join(folder, `${name}.ts`);
  writeFileSync(handler, code);
  return bundleFunction({ name, handler });
}

async function load(name: string, code: string): Promise<void> {
  await sandbox.load(manifestOf(name), await bundleOf(name, code), {});
}

const deliver = (name: string, id: string, body: Buffer): Promise<Outcome> =>
  run(sandbox, {
    function: name,
    trigger: "t",
    id,
    type: "Modified",
    object: { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "b", uid: "c" },
    resourceVersion: "1",
    attempt: 1,
    redelivered: false,
    flags: {},
    body,
    timeoutMs: 30_000,
  });

function belowFloor(floor: string): void {
  process.stdout.write(`below the floor of ${floor}: `);
  process.exitCode = 1;
}

/** Exit status 1 if fewer than `floor` events per second are handled. */
async function measure(
  title: string,
  name: string,
  body: Buffer,
  events: number,
  pending: number,
  floor = 0,
): Promise<void> {
  let left = events;
  let failed = 0;
  const lane = async () => {
    while (left-- > 0) {
      const outcome = await deliver(name, String(left), body);
      if (outcome.type !== "ok") failed++;
    }
  };
  const pid = (await sandbox.executors())[0]?.pid;
  const executorBefore = executorCpuMs(pid);
  const parentBefore = process.cpuUsage();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: pending }, lane));
  const seconds = (performance.now() - startedAt) / 1000;
  if (events / seconds < floor) belowFloor(`${floor} events/s`);
  const { user, system } = process.cpuUsage(parentBefore);
  const executorUs = ((executorCpuMs(pid) - executorBefore) * 1000) / events;
  process.stdout.write(
    `${title.padEnd(38)} ${Math.round(events / seconds)
      .toString()
      .padStart(
        7,
      )} events/s  parent ${((user + system) / events).toFixed(1)} us  executor ${executorUs.toFixed(1)} us${failed > 0 ? `  FAILED ${failed}` : ""}\n`,
  );
}

/**
 * Measures the time from the load of a 50 KB handler to the end of its first event, while 50 other isolates are alive. Exit
 * status 1 if the median of the rounds is not below `floorMs`.
 */
async function measureColdStart(rounds: number, floorMs: number): Promise<void> {
  const filler = Array.from(
    { length: 460 },
    (_, index) => `export const f${index} = (a) => a.map((b) => b * ${index}).join("${index}");`,
  );
  writeFileSync(join(folder, "filler.ts"), filler.join("\n"));
  const code = `import * as all from "./filler.ts";\nexport default (event) => Object.keys(all).length + event.id;`;
  const bundle = await bundleOf("cold", code);
  for (let index = 0; index < 50; index++) await sandbox.load(manifestOf(`live-${index}`), bundle, {});
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now();
    await sandbox.load(manifestOf("cold"), bundle, {});
    const outcome = await deliver("cold", "cold", configMap(29));
    times.push(performance.now() - startedAt);
    if (outcome.type !== "ok") belowFloor("an answer");
    sandbox.unload("cold");
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(share * rounds)] ?? Number.NaN;
  if (at(0.5) >= floorMs) belowFloor(`${floorMs} ms`);
  process.stdout.write(
    `cold start of ${(bundle.script.length / 1000).toFixed(1)} KB beside 50, ${rounds} rounds: median ${at(0.5).toFixed(1)} ms, p90 ${at(0.9).toFixed(1)} ms, least ${at(0).toFixed(1)} ms\n`,
  );
}

const configMap = (keys: number) =>
  Buffer.from(
    JSON.stringify({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "b", namespace: "a" },
      data: Object.fromEntries(Array.from({ length: keys }, (_, key) => [`key-${key}`, "v".repeat(85)])),
    }),
  );

await load("plain", "export default (event) => { if (!event.object.metadata.name) throw new Error('no name'); };");
await load("calls", `export default (e, ctx) => ctx.kube.get({ apiVersion: "v1", kind: "ConfigMap", name: "a" });`);
await measure("(warming up)", "plain", configMap(29), 20_000, 64);
await measure("3 KB, 64 pending", "plain", configMap(29), 60_000, 64, 20_000);
await measure("3 KB, 1 pending", "plain", configMap(29), 3000, 1);
await measure("3 KB, 64 pending, one call each", "calls", configMap(29), 30_000, 64, 10_000);
await measure("30 KB, 64 pending", "plain", configMap(300), 15_000, 64, 5000);
await measureColdStart(200, 10);
await sandbox.close(0);
rmSync(folder, { recursive: true });
