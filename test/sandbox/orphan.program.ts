// A parent that the test kills. Prints its executor's pid, and leaves a loop running in the executor.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../runtime/base/clock.ts";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import { Sandbox } from "../../runtime/sandbox/host/sandbox.ts";
import { bundleFunction } from "../tools/bundle.ts";

const sandbox = new Sandbox({
  executors: 1,
  clock: systemClock,
  log: { info: () => {}, warn: () => {} },
  hostCalls: { call: async () => ({ ok: true, json: "null" }) },
  output: { log: () => {}, metric: () => {} },
});
const handler = join(mkdtempSync(join(tmpdir(), "watchfire-orphan-")), "spin.ts");
writeFileSync(handler, "export default () => { for (;;); };");
const manifest = { name: "spin", handler, resources: { memoryBytes: 2 ** 25, cpuPerEventMs: 60_000 } };
await sandbox.load(manifest, await bundleFunction(manifest), {});
run(sandbox, {
  function: "spin",
  trigger: "t",
  id: "1",
  type: "Added",
  object: { apiVersion: "v1", kind: "Pod", namespace: "a", name: "b", uid: "c" },
  resourceVersion: "1",
  attempt: 1,
  redelivered: false,
  flags: {},
  body: Buffer.from("{}"),
  timeoutMs: 60_000,
});
process.stdout.write(`${(await sandbox.executors())[0]?.pid}\n`);
