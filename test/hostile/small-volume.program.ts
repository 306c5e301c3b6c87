// Runs on a volume of 40 MiB at the given path. One function's 900 KB object fails each time it changes; another function's
// events are small and succeed. Prints the results of both as JSON.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { pause, systemClock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Outcome } from "../../runtime/engine/delivery/delivery.ts";
import { Dispatcher } from "../../runtime/engine/dispatcher.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { change, manifest } from "../engine/fixture.ts";
import { promisedRunner } from "../engine/promised-runner.ts";

const [root = "", count = "0"] = process.argv.slice(2);
const folder = join(root, "data");
const store = new Checkpoint(new SqliteJournal({ folder, clock: systemClock }));
const told = { greedy: 0, neighbour: 0 };
let failures = 0;
/** Events of the greedy function that a newer one replaced, because they had filled its share of the volume. */
let collapsed = 0;
let slowestMs = 0;
let peak = 0;
const sentAt = new Map<string, number>();
const permanent: Outcome = {
  type: "permanent",
  durationMs: 1,
  error: { name: "PermanentError", message: "no", stack: "" },
};
const dispatcher = await Dispatcher.open({
  store,
  clock: systemClock,
  random: () => 0,
  log: { info() {}, warn() {}, error() {} },
  observer: {
    commitFailed: () => failures++,
    collapsed: (_name, _trigger, count) => {
      collapsed += count;
    },
  },
  runner: promisedRunner(({ function: name, resourceVersion: version }) => {
    if (name === "greedy") {
      told.greedy++;
      return permanent;
    }
    told.neighbour++;
    slowestMs = Math.max(slowestMs, performance.now() - (sentAt.get(version) ?? 0));
    return { type: "ok", durationMs: 1 };
  }),
});

async function subscribe(name: string) {
  const loaded = await dispatcher.function({ ...manifest(), name }, { usesOldObject: false });
  const subscription = loaded.subscription("settings", { selection: "all", namespace: "" });
  subscription.list("initial", undefined).end(resourceVersion("1"));
  return subscription;
}

const [greedy, neighbour] = [await subscribe("greedy"), await subscribe("neighbour")];
const spec = "x".repeat(900_000);
const until = performance.now() + 90_000;
/** Number of changes that each function received. */
const given = { greedy: 0, neighbour: 0 };
let isAside = false;
// Like a source: a subscriber that was suspended for lack of room resumes at its position.
greedy.placed({
  stepAside: (room) => {
    isAside = true;
    void room().then(() => {
      given.greedy = Number(greedy.resumeFrom ?? 9) - 9;
      isAside = false;
    });
  },
});
for (let n = 0; Math.min(told.greedy + collapsed, told.neighbour) < Number(count) && performance.now() < until; n++) {
  if (given.greedy < Number(count) && !isAside) {
    const type = given.greedy === 0 ? "Added" : "Modified";
    greedy.change(change(type, "big", 10 + given.greedy++, { spec }));
  }
  if (given.neighbour < Number(count)) {
    sentAt.set(String(10 + n), performance.now());
    neighbour.change(change("Added", `n${n}`, 10 + n));
    given.neighbour++;
  }
  await turn();
  // Like a source: reads on once no subscriber is congested.
  for (const each of [greedy, neighbour]) if (each.congested) await each.congested;
  peak = Math.max(
    peak,
    readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0),
  );
  if (given.neighbour === Number(count)) await pause(systemClock, 1);
}
await dispatcher.drain(1_000);
const { letterStock } = dispatcher.status().find((each) => each.function === "greedy") ?? {};
process.stdout.write(
  JSON.stringify({ told, collapsed, failures, slowestMs, peak, letterStock, trouble: dispatcher.trouble?.code }),
);
await store.close(false);
