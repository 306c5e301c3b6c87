import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Installation } from "../tools/installation.ts";
import { cluster, createTeam, install } from "./cluster.ts";

const quickRetry = { maxAttempts: 1000, initialDelay: "20ms", maxDelay: "50ms", factor: 1 };

test("a failed handler is not forgotten: an Added and a Deleted come again until they succeed", async () => {
  const team = await createTeam();
  const runtime = await install();
  const work = `if (event.type !== "Modified" && event.attempt < 3) throw new Error("not yet");`;
  await runtime.define("follower", { watch: team.watch(), spec: { delivery: { retry: quickRetry } }, work });
  await runtime.start();
  await team.make("a");
  await team.remove("a");
  await runtime.hears("follower", 6);
  await runtime.quiet();
  const numbered = (type: string) =>
    ["", " redelivered #2", " redelivered #3"].map((attempt) => `${type} a=1${attempt}`);
  expect(runtime.told("follower")).toEqual([...numbered("Added"), ...numbered("Deleted")]);
  expect(await runtime.metric("watchfire_events_total", { outcome: "retry" })).toBe(4);
  expect(await runtime.metric("watchfire_events_total", { outcome: "ok" })).toBe(2);
});

test("the position never passes an event that fails: after a kill it comes again, what was done does not", async () => {
  const team = await createTeam();
  const runtime = await install();
  const work = (broken: boolean) =>
    `if (${broken} && event.object.metadata.name === "bad") throw new Error("not yet");`;
  const spec = { delivery: { retry: quickRetry } };
  await runtime.define("follower", { watch: team.watch(), spec, work: work(true) });
  await runtime.start();
  await team.make("bad");
  await team.make("good");
  await runtime.hears("follower", "Added good=1");
  await runtime.hears("follower", "Added bad=1 redelivered #3");
  await runtime.saved();
  await runtime.kill();
  const before = runtime.told("follower").length;
  await runtime.define("follower", { watch: team.watch(), spec, work: work(false) });
  await runtime.start();
  await runtime.hears("follower", before + 1);
  await runtime.quiet();
  const after = runtime.told("follower").slice(before);
  expect(after).toEqual([expect.stringMatching(/^Added bad=1 redelivered #\d+$/)]);
  expect(runtime.transport.lists(team.path)).toBe(1);
});

test("one poison object among 100 ends in the dead letters, and is handled once the code is mended and it is replayed", async () => {
  const team = await createTeam();
  const runtime = await install();
  const spec = { delivery: { retry: { ...quickRetry, maxAttempts: 3 } } };
  const poisoned = `if (event.object.metadata.name === "item-42") throw new Error("cannot be digested");`;
  await runtime.define("follower", { watch: team.watch(), spec, work: poisoned });
  await runtime.start();
  await Promise.all(Array.from({ length: 100 }, (_, index) => team.make(`item-${index}`)));
  await runtime.sees("a dead letter", async () => (await runtime.deadLetters()).length === 1);
  await runtime.quiet();
  const handled = new Set(runtime.told("follower").filter((line) => !line.startsWith("Added item-42")));
  expect(handled.size).toBe(99);
  const [letter] = await runtime.deadLetters();
  expect(letter).toMatchObject({ name: "item-42", attempts: 3, error: { message: "cannot be digested" } });
  expect((await runtime.function("follower"))?.deadLetters).toBe(1);
  expect(await runtime.metric("watchfire_dead_letters", { function: "follower" })).toBe(1);

  await runtime.define("follower", { watch: team.watch(), spec });
  await runtime.reload();
  await runtime.replay(letter?.id ?? "");
  await runtime.hears("follower", "Added item-42=1 redelivered");
  await runtime.quiet();
  expect(await runtime.deadLetters()).toEqual([]);
  expect(await runtime.metric("watchfire_events_total", { outcome: "dead_letter" })).toBe(1);
});

test("what is replayed for a function that does not build, and is gone then, is counted until it is back and told", async () => {
  const team = await createTeam();
  const runtime = await install();
  const spec = { delivery: { retry: { ...quickRetry, maxAttempts: 1 } } };
  await runtime.define("follower", { watch: team.watch(), spec, work: `throw new Error("never");` });
  await runtime.start();
  await team.make("a");
  await runtime.sees("a dead letter", async () => (await runtime.deadLetters()).length === 1);
  await runtime.quiet();
  await runtime.kill();
  await runtime.define("follower", { watch: team.watch(), spec, work: "(" });
  await runtime.open();
  const counts = async () => {
    const { reason, spilled, deadLetters } = (await runtime.function("follower")) ?? {};
    const of = { function: "follower" };
    const shown = ["watchfire_function_spilled", "watchfire_dead_letters"].map((name) => runtime.metric(name, of));
    return [reason, spilled, deadLetters, ...(await Promise.all(shown))];
  };
  await runtime.sees("the fault", async () => (await runtime.function("follower"))?.reason === "BuildFailed");
  expect(await counts()).toEqual(["BuildFailed", 0, 1, 0, 1]);
  await runtime.replay((await runtime.deadLetters())[0]?.id ?? "");
  expect(await counts()).toEqual(["BuildFailed", 1, 0, 1, 0]);
  await rm(join(runtime.functions, "follower"), { recursive: true });
  await runtime.reload();
  expect(await counts()).toEqual(["Suspended", 1, 0, 1, 0]);
  await runtime.define("follower", { watch: team.watch(), spec });
  await runtime.reload();
  await runtime.hears("follower", "Added a=1 redelivered");
  await runtime.quiet();
  expect(await counts()).toEqual([undefined, 0, 0, 0, 0]);
  await rm(join(runtime.functions, "follower"), { recursive: true });
  await runtime.reload();
  // It is gone without anything to show.
  expect((await runtime.status()).functions).toEqual([]);
});

test("a dead letter and the position behind it outlive a kill: nothing is tried again by itself", async () => {
  const team = await createTeam();
  const runtime = await install();
  const spec = { delivery: { retry: { ...quickRetry, maxAttempts: 1 } } };
  await runtime.define("follower", { watch: team.watch(), spec, work: `throw new Error("never");` });
  await runtime.start();
  await team.make("a");
  await runtime.sees("a dead letter", async () => (await runtime.deadLetters()).length === 1);
  await runtime.quiet();
  await runtime.kill();
  await runtime.start();
  await team.make("b");
  await runtime.hears("follower", "Added b=1");
  expect(runtime.told("follower")).toEqual(["Added a=1", "Added b=1"]);
  await runtime.sees("both", async () => (await runtime.deadLetters()).length === 2);
});

test("an object whose handler hangs delays neither the others nor another function on the same source", async () => {
  const team = await createTeam();
  const runtime = await install();
  const work = `if (event.object.metadata.name === "stuck") await new Promise(() => {});`;
  await runtime.define("slow", { watch: team.watch(), spec: { delivery: { concurrency: 2 } }, work });
  await runtime.define("quick", { watch: team.watch() });
  await runtime.start();
  expect(await runtime.sources("ConfigMap")).toHaveLength(1);
  await team.make("stuck");
  await team.set("stuck", 2);
  for (let index = 0; index < 20; index++) await team.make(`item-${index}`);
  await runtime.hears("quick", 22);
  await runtime.hears("slow", 21);
  expect(runtime.told("slow")).not.toContain("Modified stuck=2");
});

test("a manifest that is broken by an edit is refused with its place, and what runs goes on", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("follower", { watch: team.watch() });
  await runtime.start();
  await runtime.define("follower", { watch: team.watch(), spec: { delivery: { concurrency: "many" } } });
  await runtime.reload();
  expect(JSON.stringify(runtime.lines.at(-1))).toMatch(/function\.yaml:\d+:\d+.*concurrency/);
  await team.make("a");
  await runtime.hears("follower", "Added a=1");
});

test("a function that cannot run is on the page of metrics with the reason that /status gives, as one that runs is", async () => {
  const team = await createTeam();
  const runtime = await install();
  const env = [{ name: "TOKEN", valueFrom: { secretKeyRef: { name: "none", key: "token" } } }];
  await runtime.define("lacking", { watch: team.watch(), spec: { env } });
  await runtime.define("refused", { watch: team.watch(), spec: { no: "field" } });
  await runtime.define("unbuilt", { watch: team.watch(), work: "(" });
  await runtime.define("sound", { watch: team.watch() });
  await runtime.open();
  const passing = ["Starting", "CatchingUp"];
  await runtime.sees("each has settled", async () => {
    const { functions } = await runtime.status();
    return functions.length === 4 && functions.every(({ reason = "" }) => !passing.includes(reason));
  });
  const said = (await runtime.status()).functions.map(({ name, reason }) => [name, reason]);
  expect(Object.fromEntries(said)).toEqual({
    ...{ lacking: "EnvironmentMissing", refused: "ManifestRefused", unbuilt: "BuildFailed", sound: undefined },
  });
  for (const [name = "", reason] of said) {
    const expected = reason === undefined ? [1, 0] : [0, 1];
    const ready = await runtime.metric("watchfire_function_ready", { function: name });
    const told = await runtime.metric("watchfire_function_reason", { function: name, ...(reason && { reason }) });
    expect([ready, told], name).toEqual(expected);
  }
});

test("a runtime whose credentials are refused says so by its code, where it is asked for its Lease and whether it is ready", async () => {
  const connection = { server: cluster.url, ca: cluster.caCertificate, token: "of-nobody" };
  const runtime = await Installation.on(connection, undefined, { election: { identity: "a_1", pod: "a" } });
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  await runtime.open();
  await runtime.sees("it was refused", async () => (await runtime.status()).lease?.obstacle !== undefined);
  const { lease } = await runtime.status();
  expect(lease).toEqual({ holder: "", obstacle: expect.stringMatching(/^WF_KUBE_CREDENTIALS: /) });
  const unready = await fetch(`${runtime.url}/readyz`);
  expect([unready.status, await unready.text()]).toEqual([503, `not ready: ${lease?.obstacle}\n`]);
});
