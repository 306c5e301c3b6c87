// Events per second through dispatch and a real sandbox, one by one and in batches: `node test/bench/batch.ts`.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { EventOutcome } from "../../runtime/engine/delivery/observer.ts";
import { Dispatcher } from "../../runtime/engine/dispatcher.ts";
import { Sandbox } from "../../runtime/sandbox/host/sandbox.ts";
import { change, manifest } from "../engine/fixture.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { bundleFunction } from "../tools/bundle.ts";

const events = Number(process.env.EVENTS ?? 10_000);
const spec = { text: "x".repeat(2000) };
const log = { info() {}, warn() {}, error() {} };

/**
 * Events per second with batches of this size; 1: without batches.
 * @param pauseMs how long one call of the handler waits
 */
async function measure(maxSize: number, pauseMs: number): Promise<number> {
  const handler = join(mkdtempSync(join(tmpdir(), "watchfire-batch-")), "handler.ts");
  writeFileSync(handler, `export default () => new Promise((resolve) => setTimeout(resolve, ${pauseMs}));`);
  const batch = maxSize > 1 ? { batch: { maxSize, maxWaitMs: 100 } } : {};
  const it = { ...manifest(batch), handler };
  const hostCalls = { call: async () => ({ ok: true, json: "{}" }) as const };
  const output = { log() {}, metric() {} };
  const sandbox = new Sandbox({ executors: 1, clock: systemClock, log, hostCalls, output });
  await sandbox.load(it, await bundleFunction(it), {});
  const { promise, resolve } = Promise.withResolvers<void>();
  let ended = 0;
  const observer = {
    event: (_name: string, _trigger: string, _type: string, outcome: EventOutcome) => {
      if (outcome === "ok" && ++ended === events) resolve();
    },
  };
  const parts = { store: new MemoryStore(), runner: sandbox, clock: systemClock, random: Math.random, observer, log };
  const dispatcher = await Dispatcher.open(parts);
  const loaded = await dispatcher.function(it, { usesOldObject: false });
  const subscription = loaded.subscription("settings", { selection: "all", namespace: "" });
  subscription.list("initial", undefined).end(resourceVersion("1"));
  const from = performance.now();
  for (let index = 0; index < events; index++) {
    await subscription.congested;
    subscription.change(change("Added", `n${index}`, 10 + index, { spec }));
  }
  await promise;
  const rate = events / ((performance.now() - from) / 1000);
  await dispatcher.drain(1000);
  await sandbox.close(0);
  return rate;
}

for (const pauseMs of [0, 5]) {
  for (const size of [1, 10, 100]) {
    const rate = await measure(size, pauseMs);
    process.stdout.write(`a call takes ${pauseMs} ms, ${size} events a call: ${Math.round(rate)} events/s\n`);
  }
}
