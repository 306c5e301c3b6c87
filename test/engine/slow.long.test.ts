import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { change, DispatchFixture, done, manifest, quiet } from "./fixture.ts";

const events = 100_000;
const objects = 500;
/** Limit of a function's events in memory, and of its events whose bodies are on disk. */
const memoryLimit = 1_000;

it("100,000 events while one handler hangs for ten minutes: the other function gets all of them at once, memory is bounded, and order is kept", {
  timeout: 120_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-slow-"));
  const store = new Checkpoint(new SqliteJournal({ folder }));
  onTestFinished(async () => {
    await store.close(false);
    rmSync(folder, { recursive: true, force: true });
  });
  const quick = await (await DispatchFixture.open({ store, manifest: manifest({ concurrency: 64 }) })).listed();
  const { runner, clock, dispatcher } = quick;
  const slow = await dispatcher.function({ ...manifest(), name: "slow" }, { usesOldObject: false });
  const subscription = slow.subscription("settings", { selection: "all", namespace: "" });
  subscription.list("initial", undefined).end(resourceVersion("1"));
  // The last delivered version of each object, by function, and how often an older one followed it.
  const told = { copy: new Map<string, number>(), slow: new Map<string, number>() };
  const counts = { copy: 0, slow: 0, disordered: 0 };
  runner.answer = (delivery) => {
    const name = delivery.function === "slow" ? "slow" : "copy";
    const rv = Number(delivery.resourceVersion);
    if (rv <= (told[name].get(delivery.object.name) ?? 0)) counts.disordered++;
    told[name].set(delivery.object.name, rv);
    counts[name]++;
    runner.deliveries.length = 0;
    return name === "slow" && clock.monotonic() < 600_000 ? undefined : done;
  };
  let inMemory = 0;
  for (let rv = 11; rv < 11 + events; rv++) {
    const each = change(rv < 11 + objects ? "Added" : "Modified", `n${rv % objects}`, rv);
    while (quick.subscription.congested || subscription.congested) await clock.advance(1);
    quick.subscription.change(each);
    subscription.change(each);
    if (rv % 1_000 === 0) {
      await clock.advance(100);
      inMemory = Math.max(inMemory, slow.status().queued);
    }
  }
  while (counts.copy < events) await clock.advance(100);
  expect(slow.status()).toMatchObject({ inFlight: 4 });
  expect(clock.monotonic()).toBeLessThan(600_000);
  expect(inMemory).toBeLessThanOrEqual(memoryLimit);
  await clock.advance(600_000 - clock.monotonic());
  for (const end of runner.open.values()) end(done);
  while (counts.slow < events) await clock.advance(100);
  await quiet(runner);
  expect({ ...counts, ...slow.status() }).toMatchObject({ disordered: 0, queued: 0, spilled: 0, inFlight: 0 });
});
