// Two folders are deployed as two sets to one runtime: neither deployment touches what is the other's.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import { agreed } from "../../runtime/cli/deployment.ts";
import { setNameOf } from "../../runtime/cli/set-name.ts";
import { watchfire } from "../cli/run.ts";
import { admin, createTeam } from "../scenarios/cluster.ts";
import type { Body } from "../target/client.ts";
import { CatalogFixture, home, makeKeys } from "./fixture.ts";

// Each test runs the command line several times, as processes.
vi.setConfig({ testTimeout: 90_000 });

/** Two folders for one runtime. `a` is deployed as the set `team-a`, `b` as `team-b`. */
async function two() {
  const team = await createTeam();
  const [a, b] = [await CatalogFixture.create(), await CatalogFixture.create()];
  const asA = ["--set", "team-a"];
  const asB = ["--set", "team-b", "--service-account", a.account];
  await a.define("greet", { watch: team.watch() });
  await b.define("wave", { watch: team.watch() });
  return { team, a, b, asA, asB };
}

/** The objects of a runtime, with the set of each. */
async function setsOf(fixture: CatalogFixture): Promise<Record<string, string | undefined>> {
  const labelled = await fixture.bodies();
  return Object.fromEntries(labelled.map(({ name, labels }) => [name, labels["watchfire.dev/set"]]));
}

/** Takes the set's label from all objects, as if a version without sets had deployed them. */
async function makeFormer(fixture: CatalogFixture): Promise<void> {
  for (const { path } of await fixture.bodies()) {
    await admin.patch(path, { metadata: { labels: { "watchfire.dev/set": null } } });
  }
}

const indexOf = async (fixture: CatalogFixture, set: string): Promise<string[]> => {
  const { data }: Body = await admin.get(`${fixture.indexPath}.${set}`);
  return JSON.parse(data["functions.json"]).functions.map(({ name }: { name: string }) => name);
};

test("each of two folders is deployed beside the other, both run, and all objects name their set", async () => {
  const { team, a, b, asA, asB } = await two();
  const runtime = await a.install();
  await runtime.start();
  expect(await a.deploy(...asA)).toEqual({ greet: "created" });
  expect(await b.deploy(...asB)).toEqual({ wave: "created" });
  await team.make("one");
  await runtime.hears("greet", 1);
  await runtime.hears("wave", 1);
  const before = await setsOf(a);
  const { [`ConfigMap/${home}/W-functions`]: lock, ...sets } = before;
  expect(lock).toBeUndefined();
  for (const [name, set] of Object.entries(sets))
    expect([name, set]).toEqual([name, name.includes("greet") || name.endsWith("team-a") ? "team-a" : "team-b"]);
  expect(Object.keys(sets).length).toBeGreaterThan(6);
  // Again, and changed: nothing of the other set is written.
  await a.define("greet", { watch: team.watch(), work: "ctx.log.info('again');" });
  expect(await a.deploy(...asA)).toEqual({ greet: "changed" });
  expect(await b.deploy(...asB)).toEqual({ wave: "unchanged" });
  await runtime.sees("the new code is loaded", () => runtime.lines.some(({ msg }) => msg === "change loaded"));
  await team.make("two");
  await runtime.hears("greet", 2);
  await runtime.hears("wave", 2);
  expect(await runtime.status()).not.toHaveProperty("deployment");
});

test("a function that another set has is refused with its owner, and nothing is written", async () => {
  const { team, a, b, asA, asB } = await two();
  await a.deploy(...asA);
  await b.define("greet", { watch: team.watch() });
  const before = await a.versions();
  const { status, stdout, stderr } = await b.tryDeploy(...asB);
  expect([status, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^WF_DEPLOYED_TAKEN: the function greet is of the set team-a of the runtime /);
  expect(stderr).toContain("`--set team-a`");
  expect(await a.versions()).toEqual(before);
});

test("a removal is refused unless somebody agrees, a dry run shows it, and the other set stays", async () => {
  const { team, a, b, asA, asB } = await two();
  await a.define("other", { watch: team.watch() });
  await a.deploy(...asA);
  await b.deploy(...asB);
  await a.remove("greet");
  const before = await a.versions();
  const refused = await a.tryDeploy(...asA);
  expect([refused.status, refused.stdout]).toEqual([1, ""]);
  expect(refused.stderr).toMatch(
    /^WF_DEPLOYED_REMOVES: this would remove greet from the set team-a; run the command again with --yes/,
  );
  const shown = await a.tryDeploy(...asA, "--dry-run");
  expect([shown.status, shown.stderr]).toEqual([3, ""]);
  expect(shown.stdout).toMatch(/^greet +removed\nother +unchanged .*\n/);
  expect(shown.stdout).toContain(`deleted ServiceAccount ${home}/${a.account}-greet\n`);
  expect(await a.versions()).toEqual(before);
  expect(await a.deploy(...asA, "--yes")).toEqual({ greet: "removed", other: "unchanged" });
  expect((await a.tryDeploy(...asA, "--dry-run")).status).toBe(0);
  const names = Object.keys(await setsOf(a));
  expect(names.filter((name) => name.includes("greet"))).toEqual([]);
  expect(names.filter((name) => name.includes("wave")).length).toBeGreaterThan(2);
});

test("a dry run shows the rights that change, and the edits of a manifest", async () => {
  const { team, a, asA } = await two();
  const grant = (...verbs: string[]) => ({
    watch: team.watch(),
    spec: { permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs, namespaces: [team.name] }] },
  });
  await a.define("greet", grant("get"));
  expect((await a.tryDeploy(...asA, "--dry-run")).stdout).toMatch(
    new RegExp(`^greet +created .*\\n[\\s\\S]*^created Role ${team.name}/\\S+\\n {2}\\+ get configmaps$`, "m"),
  );
  expect(await a.objects()).toEqual([]);
  await a.deploy(...asA);
  await a.define("greet", grant("patch"));
  const { status, stdout } = await a.tryDeploy(...asA, "--dry-run");
  expect(status).toBe(3);
  expect(stdout).toMatch(/^changed Role \S+\n {2}\+ patch configmaps\n {2}- get configmaps$/m);
});

test("the question takes yes for yes, and all else, the end of the input as well, for no", async () => {
  const answers = ["y\n", "YES\n", "n\n", "\n", "", "yellow\n"];
  const agreements = answers.map(async (answer) => {
    const input = new PassThrough();
    input.end(answer);
    return agreed("remove greet from the set team-a?", { input, output: new PassThrough() });
  });
  expect(await Promise.all(agreements)).toEqual([true, true, false, false, false, false]);
});

test("what was deployed before there were sets is taken over where the names are the same, and the rest goes on", async () => {
  const { team, a, asA } = await two();
  await a.define("wave", { watch: team.watch() });
  await a.deploy("--set", "default");
  await makeFormer(a);
  const runtime = await a.install();
  await runtime.start();
  await team.make("one");
  await runtime.hears("greet", 1);
  await runtime.hears("wave", 1);
  await runtime.quiet();
  // At the start, of the new set, and of what is left of the former.
  const loads = () => runtime.lines.filter(({ msg }) => msg === "deployed functions loaded").length;
  await a.remove("wave");
  const shown = await a.tryDeploy(...asA, "--dry-run");
  expect([shown.status, shown.stdout]).toEqual([3, expect.stringMatching(/^greet +unchanged .*, taken over/)]);
  expect(shown.stderr).toContain("warning: wave stays in the set default");
  const { status, stdout, stderr } = await a.tryDeploy(...asA);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^greet +unchanged .*, taken over from the set default\n/);
  expect(stderr).toContain("warning: wave stays in the set default");
  expect([await indexOf(a, "team-a"), (await a.index()).functions.map(({ name }) => name)]).toEqual([
    ["greet"],
    ["wave"],
  ]);
  const sets = await setsOf(a);
  for (const [name, set] of Object.entries(sets)) {
    const isTaken = name.includes("greet") || name.endsWith("team-a");
    expect([name, set]).toEqual([name, isTaken ? "team-a" : undefined]);
  }
  await runtime.sees("it is loaded", () => loads() === 3);
  const taken = runtime.lines.find(
    (line) => line.msg === "deployed functions loaded" && "set" in line && line.set === "team-a",
  );
  expect(taken).toMatchObject({ set: "team-a", revision: 1, functions: 1 });
  await team.set("one", 2);
  await runtime.hears("greet", 2);
  await runtime.hears("wave", 2);
  expect(runtime.lines.filter(({ msg }) => msg === "function removed")).toEqual([]);
  // Both continued, and no event ran twice.
  expect([runtime.told("greet"), runtime.told("wave")]).toEqual(Array(2).fill(["Added one=1", "Modified one=2"]));
  expect(await runtime.status()).not.toHaveProperty("deployment");
  // Somebody else's folder with the other one takes it over in turn.
  const b = await CatalogFixture.create();
  await b.define("wave", { watch: team.watch() });
  expect(await b.deploy("--set", "team-b", "--service-account", a.account)).toEqual({ wave: "unchanged" });
  expect((await a.index()).functions).toEqual([]);
});

test("a takeover that is killed between its two indexes stops nothing, and the next finishes it", async () => {
  const { team, a, asA } = await two();
  await a.deploy("--set", "default");
  await makeFormer(a);
  const former = await a.index();
  const runtime = await a.install();
  await runtime.start();
  await a.deploy(...asA);
  // The former index again names what was taken over.
  await a.setIndex(former);
  await team.make("one");
  await runtime.hears("greet", 1);
  expect(await runtime.status()).not.toHaveProperty("deployment");
  expect(await a.deploy(...asA)).toEqual({ greet: "unchanged" });
  expect((await a.index()).functions).toEqual([]);
});

test("what the set default deployed with its label is nobody's to take over", async () => {
  const { a, asA } = await two();
  await a.deploy("--set", "default");
  const { status, stderr } = await a.tryDeploy(...asA);
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/^WF_DEPLOYED_TAKEN: the function greet is of the set default /),
  ]);
});

test("a deployment that goes on as the set default only adds the label, and is asked about removals", async () => {
  const { team, a } = await two();
  await a.define("wave", { watch: team.watch() });
  await a.deploy();
  await makeFormer(a);
  await a.remove("wave");
  expect((await a.tryDeploy()).stderr).toMatch(/^WF_DEPLOYED_REMOVES: this would remove wave from the set default/);
  expect(await a.deploy("--yes")).toEqual({ greet: "unchanged", wave: "removed" });
  expect(new Set(Object.values(await setsOf(a)))).toEqual(new Set(["default"]));
});

test("a runtime of a version without sets is not deprived of its functions", async () => {
  const { a, asA } = await two();
  await a.deploy("--set", "default");
  await makeFormer(a);
  const path = `/apis/apps/v1/namespaces/${home}/deployments`;
  const labels = { app: a.account };
  const template = {
    metadata: { labels },
    spec: { serviceAccountName: a.account, containers: [{ name: "runtime", image: "x" }] },
  };
  const spec = { replicas: 0, selector: { matchLabels: labels }, template };
  await admin.post(path, { metadata: { name: a.account }, spec });
  onTestFinished(async () => void (await admin.delete(`${path}/${a.account}`)));
  const before = await a.versions();
  const { status, stderr } = await a.tryDeploy(...asA);
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/^WF_DEPLOYED_NO_SETS: .* would take over greet; upgrade the runtime first/),
  ]);
  expect(await a.versions()).toEqual(before);
  await admin.patch(`${path}/${a.account}`, { metadata: { annotations: { "watchfire.dev/sets": "true" } } });
  expect(await a.deploy(...asA)).toEqual({ greet: "unchanged" });
});

test("a set is undeployed after the question, with its accounts and rights, and the other goes on", async () => {
  const { team, a, b, asA, asB } = await two();
  await a.deploy(...asA);
  await b.deploy(...asB);
  const runtime = await a.install();
  await runtime.start();
  const of = ["undeploy", ...asA, "--service-account", a.account, "--kubeconfig", join(a.folder, "kubeconfig")];
  const refused = await watchfire(of);
  expect([refused.status, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/^WF_DEPLOYED_REMOVES: this would remove greet/),
  ]);
  const others = (versions: string[]) => versions.filter((each) => /wave|\.team-b /.test(each));
  const before = others(await a.versions());
  const { status, stdout } = await watchfire([...of, "--yes"]);
  expect(others(await a.versions())).toEqual(before);
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^greet +removed\n/)]);
  await runtime.sees("it is gone", async () => (await runtime.function("greet")) === undefined);
  await team.make("one");
  await runtime.hears("wave", 1);
  expect(Object.keys(await setsOf(a)).filter((name) => name.includes("greet"))).toEqual([]);
  expect((await watchfire([...of, "--yes"])).stderr).toMatch(/^WF_DEPLOYED_NO_SET: /);
});

test("of two sets with one function the first runs, and /status names both", async () => {
  const { a, b, asA, asB } = await two();
  await a.deploy(...asA);
  await b.deploy(...asB);
  const { data }: Body = await admin.get(`${a.indexPath}.team-a`);
  await admin.patch(`${a.indexPath}.team-b`, { data });
  const runtime = await a.install();
  await runtime.start();
  expect((await runtime.status()).deployment).toMatchObject({
    reason: "WF_DEPLOYED_TAKEN",
    message: expect.stringContaining("the function greet is in the sets team-a and team-b; that of team-a runs"),
  });
  expect((await runtime.status()).functions.map(({ name }) => name)).toEqual(["greet"]);
});

test("one set whose index is gone or damaged keeps its functions, and the other set is deployed", async () => {
  const { team, a, b, asA, asB } = await two();
  await a.deploy(...asA);
  await b.deploy(...asB);
  const runtime = await a.install();
  await runtime.start();
  await admin.delete(`${a.indexPath}.team-a`);
  await runtime.sees("it says so", async () => (await runtime.status()).deployment?.reason === "WF_DEPLOYED_INDEX");
  await b.define("new", { watch: team.watch() });
  expect(await b.deploy(...asB)).toEqual({ new: "created", wave: "unchanged" });
  await runtime.sees("it runs", async () => (await runtime.function("new"))?.ready === true);
  await team.make("one");
  for (const name of ["greet", "wave", "new"]) await runtime.hears(name, 1);
  await a.deploy(...asA);
  await runtime.sees("it is mended", async () => (await runtime.status()).deployment === undefined);
});

test("the index of one set, signed, is not accepted as that of another, and an old one of each is refused", async () => {
  const { team, a, b, asA, asB } = await two();
  const keys = makeKeys(a.folder);
  await a.deploy(...asA, "--sign", keys.private);
  await b.deploy(...asB, "--sign", keys.private);
  const runtime = await a.install({ trust: a.trust(keys.public) });
  await runtime.start();
  const reason = async () => (await runtime.status()).deployment?.reason;
  const [one, other]: Body[] = [await admin.get(`${a.indexPath}.team-a`), await admin.get(`${a.indexPath}.team-b`)];
  await admin.patch(`${a.indexPath}.team-b`, { data: one?.data });
  await runtime.sees("it is refused", async () => (await reason()) === "WF_DEPLOYED_UNTRUSTED");
  await admin.patch(`${a.indexPath}.team-b`, { data: other?.data });
  await runtime.sees("it is mended", async () => (await reason()) === undefined);
  await b.define("wave", { watch: team.watch(), work: "await 0;" });
  await b.deploy(...asB, "--sign", keys.private);
  await runtime.sees("the new code is loaded", () => runtime.lines.some(({ msg }) => msg === "change loaded"));
  await admin.patch(`${a.indexPath}.team-b`, { data: other?.data });
  await runtime.sees("it is refused", async () => (await reason()) === "WF_DEPLOYED_REPLAYED");
  await runtime.kill();
  await runtime.open();
  await runtime.sees("it is refused again", async () => (await reason()) === "WF_DEPLOYED_REPLAYED");
  await admin.delete(`${a.indexPath}.team-b`);
  await runtime.sees("its absence is refused", async () => (await reason()) === "WF_DEPLOYED_UNTRUSTED");
});

test("a set is named after package.json in the folder, beside it or above it up to the working directory", async () => {
  const fixture = await CatalogFixture.create();
  const at = async (place: string, text: string) => {
    await mkdir(join(fixture.folder, place), { recursive: true });
    await writeFile(join(fixture.folder, place, "package.json"), text);
  };
  const of = (folder: string, from = "work") => setNameOf(join(fixture.folder, folder), join(fixture.folder, from));
  await mkdir(join(fixture.folder, "work/deep/er/functions"), { recursive: true });
  expect(of("work/deep/er/functions")).toBe("default");
  await at(".", '{ "name": "outside" }');
  expect(of("work/deep/er/functions")).toBe("default");
  await at("work", '{ "name": "@acme/My_Functions." }');
  expect(of("work/deep/er/functions")).toBe("acme-my-functions");
  expect(of("work/deep", "elsewhere")).toBe("acme-my-functions");
  expect(of("work/deep/er/functions", "elsewhere")).toBe("default");
  await at("work/deep", "{ not JSON");
  expect(of("work/deep/er/functions")).toBe("default");
  await at("work/deep", `{ "name": "${"a".repeat(62)}.b" }`);
  expect(of("work/deep/er/functions")).toBe("a".repeat(62));
});
