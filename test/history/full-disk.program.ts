// Runs on a small volume, given as argument: collects runs, fills the volume, and continues collecting. Prints what came of it.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../runtime/base/clock.ts";
import { RunHistory } from "../../runtime/history/run-history.ts";
import type { EndedRun } from "../../runtime/observe/run-log.ts";

const [folder = ""] = process.argv.slice(2);
const warnings: object[] = [];
let dropped = 0;
const history = new RunHistory({
  limits: { bytes: 64 * 2 ** 20, ageMs: 86_400_000 },
  folder,
  clock: systemClock,
  log: { warn: (fields: object) => void warnings.push(fields) } as never,
  redact: (_, text) => text,
  frameOf: () => undefined,
  dropped: (_, count) => {
    dropped += count;
  },
});
history.begin();

/** Collects and writes as many failed runs, each with a stack of 3,000 characters. */
async function collect(count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const now = Date.now();
    const error = { name: "Error", message: `no ${n}`, stack: "x".repeat(3_000) };
    const object = { apiVersion: "v1", kind: "ConfigMap", namespace: "team-a", name: `n${n}`, uid: "u" };
    const run: EndedRun = {
      ...{ function: "greet", trigger: "settings", id: `settings:u/${n}/Added`, type: "Added", object },
      ...{ resourceVersion: String(n), attempt: 1, redelivered: false, flags: {}, causes: undefined, batch: undefined },
      ...{ receivedAt: now, beganAt: now, endedAt: now, calls: undefined, body: undefined, oldBody: undefined },
      outcome: { type: "failed", error, durationMs: 1 },
    };
    history.runs.ended.push(run);
  }
  await history.flush();
}

await collect(10);
const before = (await history.find({ limit: 100 })).length;
try {
  for (;;) appendFileSync(join(folder, "other"), Buffer.alloc(4096));
} catch {
  // It is full.
}
for (let round = 0; round < 20; round++) await collect(50);
const after = (await history.find({ limit: 100 })).length;
await history.close();
process.stdout.write(JSON.stringify({ before, after, isOn: history.isOn, warnings, hasDropped: dropped > 0 }));
