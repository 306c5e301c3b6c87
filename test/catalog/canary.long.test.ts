// A set is deployed as a canary: other code gets a share of the keys, and is promoted or aborted.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { parse } from "yaml";
import { readCanary, saltOf } from "../../runtime/catalog/canary.ts";
import { readConfigMap } from "../../runtime/catalog/config-map.ts";
import { isInShare } from "../../runtime/sandbox/host/canary-route.ts";
import { admin, createTeam } from "../scenarios/cluster.ts";
import type { Body } from "../target/client.ts";
import type { Installation } from "../tools/installation.ts";
import type { Team } from "../tools/team.ts";
import { CatalogFixture, home, makeKeys } from "./fixture.ts";

// Each test runs the command line several times, as processes.
vi.setConfig({ testTimeout: 120_000 });

const crd = await readFile(join(import.meta.dirname, "../../deploy/chart/files/functions.watchfire.dev.yaml"), "utf8");
await admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", parse(crd));

const retry = { retry: { maxAttempts: 2, initialDelay: "1s" } };

/** A function that logs a word for each event, and then does `more`. */
const says = (team: Team, word: string, more = "", spec: object = {}) => ({
  watch: team.watch(),
  work: `ctx.log.info("${word}", { key: event.object.metadata.name }); ${more}`,
  spec: { delivery: retry, ...spec },
});

/** A set of one function whose code `current` is deployed, with a runtime. */
async function deployed(name: string, spec: object = {}, ...more: string[]) {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define(name, says(team, "current", "", spec));
  await fixture.deploy(...more);
  const runtime = await fixture.install({ functionStatus: true });
  await runtime.start();
  const change = (word: string, more = "") => fixture.define(name, says(team, word, more, spec));
  return { team, fixture, runtime, change };
}

const of = (runtime: Installation, word: string): Set<string> =>
  new Set(runtime.lines.flatMap(({ msg, fields }) => (msg === word ? String((fields as { key?: string })?.key) : [])));

const loaded = (runtime: Installation, msg: string, times = 1) =>
  runtime.sees(msg, () => runtime.lines.filter((line) => line.msg === msg).length >= times);

const indexOf = async (fixture: CatalogFixture): Promise<Body> => admin.get(fixture.indexPath);

/** The names in the share of the fixture's canary. */
async function sharedOut(fixture: CatalogFixture, team: Team, names: readonly string[]): Promise<Set<string>> {
  const index = readConfigMap(await indexOf(fixture));
  const canary = index && readCanary(index);
  if (!canary) throw new Error("no canary");
  return new Set(names.filter((name) => isInShare(saltOf(canary), `${team.name}/${name}`, canary.share)));
}

const default_ = ["--set", "default"];
const inTeam = ["--set", "team-a"];

/** Waits until the Function object reports the state of the canary. */
const reports = (runtime: Installation, name: string, state: string | undefined) =>
  runtime.sees(`the canary of ${name} is reported as ${state}`, async () => {
    runtime.clock.cutShort(5_000, 5_001);
    const found = await admin
      .get(`/apis/watchfire.dev/v1alpha1/namespaces/${home}/functions/${name}`)
      .catch(() => ({}));
    return (found as Body).status?.canary?.state === state;
  });

let version = 1;

const names = Array.from({ length: 24 }, (_, index) => `o${index}`);

test("a canary gets its share of the keys, over a restart too, and promoted it is a revision that gets all", async () => {
  const { team, fixture, runtime, change } = await deployed("share");
  await change("canary");
  expect(await fixture.deploy("--canary", "50%", "-m", "try it")).toEqual({ share: "changed" });
  await loaded(runtime, "canary loaded");
  for (const name of names) await team.make(name);
  await runtime.hears("share", names.length);
  await runtime.quiet();
  const expected = await sharedOut(fixture, team, names);
  expect(expected.size).toBeGreaterThan(0);
  expect(of(runtime, "canary")).toEqual(expected);
  expect(of(runtime, "current")).toEqual(new Set(names.filter((name) => !expected.has(name))));
  await runtime.quiet();
  const { canary } = (await runtime.function("share")) ?? {};
  expect(canary).toMatchObject({
    share: 50,
    state: "running",
    current: { runs: names.length - expected.size, failures: 0 },
    canary: { runs: expected.size, failures: 0 },
  });
  await reports(runtime, "share", "running");
  await runtime.drain();
  runtime.lines.length = 0;
  await runtime.start();
  for (const name of names) await team.set(name, ++version);
  await runtime.hears("share", names.length);
  await runtime.quiet();
  expect(of(runtime, "canary")).toEqual(expected);
  await reports(runtime, "share", "running");
  const promoted = await fixture.run("promote", ...default_, "-m", "it works");
  expect([promoted.status, promoted.stderr]).toEqual([
    0,
    expect.stringMatching(/^promoted the canary as revision 2 of /),
  ]);
  await loaded(runtime, "change loaded");
  runtime.lines.length = 0;
  for (const name of names) await team.set(name, ++version);
  await runtime.hears("share", names.length);
  await runtime.quiet();
  expect([of(runtime, "current").size, of(runtime, "canary").size]).toEqual([0, names.length]);
  const { stdout } = await fixture.run("revisions", ...default_, "-o", "json");
  expect(JSON.parse(stdout)).toMatchObject({
    current: 2,
    revisions: [{ message: "promoted the canary: it works" }, {}],
  });
  expect((await indexOf(fixture)).data["canary.json"]).toBeUndefined();
  expect(await fixture.configMaps()).toHaveLength(2);
  const again = await fixture.run("promote", ...default_);
  expect([again.status, again.stderr]).toEqual([1, expect.stringContaining("WF_DEPLOYED_NO_CANARY")]);
});

test("a canary whose attempts fail is aborted by its manifest's rule, for good, and is not promoted", async () => {
  const rule = { canary: { abortWhen: { failureRate: 0.2, minRuns: 4 } } };
  const { team, fixture, runtime, change } = await deployed("worse", rule);
  await change("canary", "throw new Error('no');");
  await fixture.deploy("--canary", "60%");
  await loaded(runtime, "canary loaded");
  for (const name of names) await team.make(name);
  await loaded(runtime, "canary aborted, the current code gets all keys");
  await runtime.hears("worse", names.length);
  await runtime.quiet();
  const report = await runtime.function("worse");
  expect(report).toMatchObject({ ready: true, reason: "CanaryAborted", canary: { state: "aborted", share: 60 } });
  expect(report?.message).toMatch(
    /^its canary is aborted, and its current code gets all keys: \d+ of its \d+ attempts failed/,
  );
  const audit = runtime.lines.filter(({ msg, verb }) => msg === "audit" && verb === "abort");
  expect(audit).toEqual([expect.objectContaining({ who: "the runtime", function: "worse" })]);
  await reports(runtime, "worse", "aborted");
  const refused = await fixture.run("promote", ...default_);
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("WF_DEPLOYED_CANARY_ABORTED")]);
  // The next process knows.
  await runtime.drain();
  runtime.lines.length = 0;
  await runtime.start();
  for (const name of names) await team.set(name, ++version);
  await runtime.hears("worse", names.length);
  await runtime.quiet();
  expect([of(runtime, "canary").size, of(runtime, "current").size]).toEqual([0, names.length]);
  expect((await runtime.function("worse"))?.canary?.reason).toMatch(/^it was aborted at /);
  // Another canary is judged for itself.
  await change("corrected");
  await fixture.deploy("--canary", "60%");
  await loaded(runtime, "canary loaded");
  expect((await runtime.function("worse"))?.canary?.state).toBe("running");
});

test("`abort` gives all keys back to the current code, and the audit names who, and why", async () => {
  const { team, fixture, runtime, change } = await deployed("ended", {}, ...inTeam);
  await change("canary");
  await fixture.deploy("--canary", "99%", ...inTeam);
  await loaded(runtime, "canary loaded");
  await team.make("a");
  await runtime.hears("ended", 1);
  await runtime.quiet();
  const { status, stderr } = await fixture.run("abort", ...inTeam, "--reason", "too slow");
  expect([status, stderr]).toEqual([0, expect.stringMatching(/^aborted the canary of the set team-a \(ended\)/)]);
  await runtime.sees("the canary is gone", async () => (await runtime.function("ended"))?.canary === undefined);
  runtime.lines.splice(0, runtime.lines.length, ...runtime.lines.filter(({ msg }) => msg === "audit"));
  for (const name of names) await team.make(name);
  await runtime.hears("ended", names.length);
  await runtime.quiet();
  expect([of(runtime, "canary").size, of(runtime, "current").size]).toEqual([0, names.length]);
  await runtime.sees("it is audited", () => runtime.lines.some(({ verb }) => verb === "abort"));
  const entry = (verb: string) => runtime.lines.find((line) => line.msg === "audit" && line.verb === verb);
  const self = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const me = await admin.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", self);
  const who = me.status.userInfo.username;
  expect(entry("canary")).toMatchObject({ who, set: "team-a", functions: ["ended"], result: "done" });
  expect(entry("abort")).toMatchObject({ who, set: "team-a", functions: ["ended"], reason: "too slow" });
  // The canary's ConfigMap is gone, and the lock is there; the revision is still the first.
  expect(await fixture.configMaps()).toHaveLength(3);
  const { stdout } = await fixture.run("revisions", ...inTeam, "-o", "json");
  expect(JSON.parse(stdout)).toMatchObject({ current: 1, revisions: [{}] });
});

test("what a canary may not change is refused by its name, and nothing is written", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const base = says(team, "one");
  await fixture.define("first", base);
  const early = await fixture.tryDeploy("--canary", "10%");
  expect([early.status, early.stderr]).toEqual([1, expect.stringContaining("no deployed code to compare with")]);
  await fixture.deploy();
  const before = await fixture.versions();
  const refused = async (words: string) => {
    const { status, stderr } = await fixture.tryDeploy("--canary", "10%", "--yes");
    expect([status, stderr]).toEqual([1, expect.stringContaining("WF_DEPLOYED_CANARY: ")]);
    expect(stderr).toContain(words);
  };
  await refused("no function differs from those of the set default");
  await fixture.define("second", base);
  await refused("the function second is new in the set default");
  await fixture.remove("second");
  const permissions = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"], namespaces: [team.name] }];
  await fixture.define("first", says(team, "one", "", { permissions, resources: { memory: "80Mi", cache: "2Mi" } }));
  await refused("`resources.cache`, `permissions` of first differ");
  await fixture.define("first", { ...base, watch: team.watch({ events: ["Added"] }) });
  await refused("`triggers` of first differs");
  await fixture.define("first", says(team, "one", "ctx.log.info(String(event.oldObject));"));
  await refused("the use of `oldObject` of first differs");
  await fixture.define("first", says(team, "one", "", { delivery: { ...retry, batch: {} } }));
  await refused("`delivery.batch` of first differs; first receives batches");
  expect(await fixture.versions()).toEqual(before);
  await fixture.define("first", says(team, "two", "", { resources: { memory: "80Mi" }, canary: {} }));
  for (const share of ["0%", "100%", "10"]) expect((await fixture.tryDeploy("--canary", share)).status).toBe(1);
  expect(await fixture.deploy("--canary", "10%")).toEqual({ first: "changed" });
});

test("a deployment without --canary ends the canary, and all keys get its code", async () => {
  const { team, fixture, runtime, change } = await deployed("whole");
  await change("canary");
  await fixture.deploy("--canary", "99%");
  await loaded(runtime, "canary loaded");
  await change("whole");
  const { status, stderr } = await fixture.tryDeploy();
  expect([status, stderr]).toEqual([0, expect.stringContaining("the canary of whole ends, and was not promoted")]);
  await loaded(runtime, "change loaded");
  for (const name of names) await team.make(name);
  await runtime.hears("whole", names.length);
  await runtime.quiet();
  expect(of(runtime, "whole").size).toBe(names.length);
  expect((await runtime.function("whole"))?.canary).toBeUndefined();
});

test("a runtime with --trust takes only a canary that was signed with its index, and a signer promotes no other", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const keys = makeKeys(fixture.folder);
  await fixture.define("signed", says(team, "current"));
  await fixture.deploy("--sign", keys.private);
  const runtime = await fixture.install({ functionStatus: true, trust: fixture.trust(keys.public) });
  await runtime.start();
  await fixture.define("signed", says(team, "canary"));
  await fixture.deploy("--canary", "99%", "--sign", keys.private);
  await loaded(runtime, "canary loaded");
  const { data } = await indexOf(fixture);
  const aborted = await fixture.run("abort", ...default_, "--sign", keys.private);
  expect([aborted.status, aborted.stderr]).toEqual([0, expect.stringMatching(/^aborted/)]);
  await runtime.sees("the canary is gone", async () => (await runtime.function("signed"))?.canary === undefined);
  // An attacker puts back the aborted canary, with its signature.
  const { "canary.json": text, "canary-signature.json": signature } = data;
  await admin.patch(fixture.indexPath, { data: { "canary.json": text, "canary-signature.json": signature } });
  await loaded(runtime, "deployment not loaded");
  const refusal = runtime.lines.find(({ msg }) => msg === "deployment not loaded");
  expect(refusal?.error).toContain("the canary: it was signed for another index");
  expect((await runtime.function("signed"))?.canary).toBeUndefined();
  await admin.patch(fixture.indexPath, { data: { "canary-signature.json": null } });
  const refused = await fixture.run("promote", ...default_, "--sign", keys.private);
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("WF_DEPLOYED_UNTRUSTED")]);
});
