// npm run soak -- --hours N: a whole runtime through churn, kills, cut connections, lost history, edits, deployments and restores
// (`runtime.ts`). Without --hours it is about the sandbox alone: it checks that the sandbox's memory stays flat over a long life, in about 10 minutes on two cores. `-- --functions
// 1000 --events 50000 --crash-every 1000 --resident 1000` make it shorter. Exit status 1 if a law does not hold. Garbage is
// limited as in the runtime.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../../runtime/base/clock.ts";
import type { Bundle } from "../../runtime/bundle/bundle.ts";
import { type Outcome, run } from "../../runtime/engine/delivery/delivery.ts";
import { Sandbox } from "../../runtime/sandbox/host/sandbox.ts";
import { tuneEngine } from "../../runtime/v8/engine.ts";
import { residentBytes } from "../../runtime/v8/resident-memory.ts";
import { bundleFunction } from "../tools/bundle.ts";

const { values } = parseArgs({
  options: {
    functions: { type: "string", default: "10000" },
    events: { type: "string", default: "1000000" },
    "crash-every": { type: "string", default: "1000" },
    resident: { type: "string", default: "1000" },
    hours: { type: "string" },
  },
});
if (values.hours !== undefined) {
  const { soakRuntime } = await import("./runtime.ts");
  process.exit((await soakRuntime(Number(values.hours) * 3_600_000)) ? 0 : 1);
}
tuneEngine();
const folder = mkdtempSync(join(tmpdir(), "watchfire-soak-"));
const mebibytes = (bytes: number) => Math.round(bytes / 2 ** 20);
/** Maximum growth factor of the parent's resident memory from the end of the warm-up, up to which it counts as flat. */
const flat = 1.1;
let faults = 0;

function say(text: string, holds = true): void {
  if (!holds) faults++;
  process.stdout.write(`${holds ? "   " : "NO "}${text}\n`);
}

function makeSandbox(deaths: string[] = []): Sandbox {
  return new Sandbox({
    executors: 2,
    clock: systemClock,
    log: { info: () => {}, warn: () => {} },
    hostCalls: { call: async () => ({ ok: true, json: "{}" }) },
    output: { log: () => {}, metric: () => {} },
    observer: { executorDied: (reason) => deaths.push(reason) },
  });
}

async function bundleOf(name: string, code: string): Promise<Bundle> {
  const handler = join(folder, `${name}.ts`);
  writeFileSync(handler, code);
  return bundleFunction({ name, handler });
}

const manifestOf = (name: string) => ({ name, resources: { memoryBytes: 32 * 2 ** 20, cpuPerEventMs: 500 } });
const body = Buffer.from(JSON.stringify({ metadata: { name: "a" }, data: { text: "x".repeat(2000) } }));
let ids = 0;
const deliver = (sandbox: Sandbox, name: string, trigger = "t"): Promise<Outcome> =>
  run(sandbox, {
    function: name,
    trigger,
    id: String(++ids),
    type: "Modified",
    object: { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "b", uid: "c" },
    resourceVersion: "1",
    attempt: 1,
    redelivered: false,
    flags: {},
    body,
    timeoutMs: 30_000,
  });

/** Resident memory of this process after a garbage collection, if `--expose-gc` is set. */
function parentMemory(): number {
  globalThis.gc?.();
  return residentBytes(process.pid);
}

/** Loads functions, runs them once and drops them, one after another. */
async function churn(count: number): Promise<void> {
  const sandbox = makeSandbox();
  const bundle = await bundleOf("churn", "export default (event) => event.object.data.text.length;");
  const startedAt = performance.now();
  let before = 0;
  let executorsBefore = 0;
  const resident = async () => (await sandbox.executors()).reduce((sum, { pid }) => sum + residentBytes(pid), 0);
  for (let index = 0; index < count; index++) {
    const name = `churn-${index}`;
    await sandbox.load(manifestOf(name), bundle, {});
    const outcome = await deliver(sandbox, name);
    if (outcome.type !== "ok") say(`${name} ended ${outcome.type}`, false);
    sandbox.unload(name);
    if (index === Math.floor(count / 5)) [before, executorsBefore] = [parentMemory(), await resident()];
  }
  const after = parentMemory();
  const executors = await resident();
  const ms = (performance.now() - startedAt) / count;
  say(`${count} functions loaded and dropped, ${ms.toFixed(1)} ms each`);
  say(`  parent ${mebibytes(before)} -> ${mebibytes(after)} MiB`, after < before * flat);
  say(`  executors ${mebibytes(executorsBefore)} -> ${mebibytes(executors)} MiB`, executors < executorsBefore * 1.25);
  await sandbox.close(0);
}

/** Sends events continuously. After each `every` events, an executor is killed before the next are sent. */
async function crashes(events: number, every: number): Promise<void> {
  const deaths: string[] = [];
  const sandbox = makeSandbox(deaths);
  await sandbox.load(manifestOf("steady"), await bundleOf("steady", "export default () => {};"), {});
  const bomb = await bundleOf(
    "bomb",
    "export default () => { const map = new Map(); for (let i = 0; ; i++) map.set(i, { i }); };",
  );
  const endings: Record<string, number> = {};
  const one = async () => {
    let outcome: Outcome;
    do outcome = await deliver(sandbox, "steady");
    while (outcome.type === "interrupted");
    endings[outcome.type] = (endings[outcome.type] ?? 0) + 1;
  };
  /** Kills an executor from outside or by a bomb, in turns. Resolves once it is gone. */
  const crash = async (turn: number) => {
    const before = deaths.length;
    if (turn % 10 === 0) {
      const resources = { memoryBytes: 16 * 2 ** 20, cpuPerEventMs: 5000 };
      await sandbox.load({ ...manifestOf("bomb"), resources }, bomb, {});
      await deliver(sandbox, "bomb");
      sandbox.unload("bomb");
      return;
    }
    const [victim] = await sandbox.executors();
    if (victim?.pid) process.kill(victim.pid, "SIGKILL");
    while (deaths.length === before) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  const startedAt = performance.now();
  const total = Math.floor(events / every);
  const samples: number[] = [];
  const heaps: number[] = [];
  for (let turn = 1; turn <= total; turn++) {
    let left = every;
    const lane = async () => {
      while (left-- > 0) await one();
    };
    const lanes = Array.from({ length: 64 }, lane);
    // In the middle of the events.
    while (left > every / 2) await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([crash(turn), ...lanes]);
    if (turn % Math.ceil(total / 10) !== 0) continue;
    samples.push(parentMemory());
    heaps.push(process.memoryUsage().heapUsed);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const [first = 0] = samples;
  const [firstHeap = 0] = heaps;
  say(
    `${total * every} events in ${seconds.toFixed(0)} s, ${deaths.length} executors lost`,
    deaths.length >= total * 0.9,
  );
  say(`  endings ${JSON.stringify(endings)}`, endings.ok === total * every);
  say(`  parent, by tenths ${samples.map(mebibytes).join(" ")} MiB`, (samples.at(-1) ?? 0) < first * flat);
  say(`  its heap ${heaps.map(mebibytes).join(" ")} MiB`, (heaps.at(-1) ?? 0) < firstHeap * flat);
  await sandbox.close(0);
}

/** Loads functions that all stay: measures the cost of one, and the time until all are ready. */
async function density(count: number): Promise<void> {
  const sandbox = makeSandbox();
  const bundle = await bundleOf("resident", "export default (event) => event.object.data.text.length;");
  sandbox.warm();
  await deliver(sandbox, "none");
  const startedAt = performance.now();
  const resident = async () => (await sandbox.executors()).reduce((sum, { pid }) => sum + residentBytes(pid), 0);
  const parentBefore = parentMemory();
  await Promise.all(Array.from({ length: count }, (_, index) => sandbox.load(manifestOf(`f-${index}`), bundle, {})));
  const readyMs = performance.now() - startedAt;
  const outcomes = await Promise.all(Array.from({ length: count }, (_, index) => deliver(sandbox, `f-${index}`)));
  const good = outcomes.filter((outcome) => outcome.type === "ok").length;
  const executors = await resident();
  const each = executors / count / 2 ** 20;
  say(`${count} functions ready after ${(readyMs / 1000).toFixed(1)} s; ${good} answered`, good === count);
  say(`  executors ${mebibytes(executors)} MiB in all, ${each.toFixed(2)} MiB a function`, count < 500 || each < 4);
  say(`  parent ${mebibytes(parentBefore)} -> ${mebibytes(parentMemory())} MiB`);
  await sandbox.close(0);
}

/** Uses a new context for each of so many events, and measures what the executors keep of a thousand. */
async function contexts(events: number): Promise<void> {
  const sandbox = makeSandbox();
  const bundle = await bundleOf("fresh", "export default (event) => event.object.data.text.length;");
  await sandbox.load({ ...manifestOf("fresh"), isolation: "Event" }, bundle, {});
  const resident = async () => (await sandbox.executors()).reduce((sum, { pid }) => sum + residentBytes(pid), 0);
  let left = events;
  let before = 0;
  const startedAt = performance.now();
  const lane = async () => {
    while (left-- > 0) {
      const outcome = await deliver(sandbox, "fresh");
      if (outcome.type !== "ok") say(`a fresh context's event ended ${outcome.type}`, false);
      if (left === Math.floor((events * 4) / 5)) before = await resident();
    }
  };
  await Promise.all(Array.from({ length: 4 }, lane));
  const ms = (performance.now() - startedAt) / events;
  const slope = ((await resident()) - before) / 2 ** 20 / (events / 1250);
  say(`${events} events with a fresh context each, ${ms.toFixed(1)} ms each`);
  say(`  executors grew ${slope.toFixed(2)} MiB a thousand`, slope < 1);
  await sandbox.close(0);
}

await crashes(Number(values.events), Number(values["crash-every"]));
await churn(Number(values.functions));
await contexts(Number(values.functions));
await density(Number(values.resident));
rmSync(folder, { recursive: true });
process.exitCode = faults > 0 ? 1 : 0;
