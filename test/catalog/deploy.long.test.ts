import { randomBytes } from "node:crypto";
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { watchfire } from "../cli/run.ts";
import { admin, createTeam } from "../scenarios/cluster.ts";
import type { Body } from "../target/client.ts";
import type { WatchEvent } from "../target/watch-reader.ts";
import { CatalogFixture, configMaps, home } from "./fixture.ts";

// Each test runs the command line several times, as processes.
vi.setConfig({ testTimeout: 60_000 });

const rbac = "/apis/rbac.authorization.k8s.io/v1";

const grant = (namespace: string, ...verbs: string[]) => ({
  permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs, namespaces: [namespace] }],
});

test("each function has one immutable ConfigMap named by its content, an account and rights, none of them Helm's", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch(), spec: grant(team.name, "get") });
  await fixture.define("wave", { watch: team.watch() });
  await fixture.deploy();
  const immutable = (await fixture.configMaps()).filter((configMap) => configMap.immutable === true);
  expect(immutable.map(({ metadata }) => metadata.labels?.["watchfire.dev/function"]).sort()).toEqual([
    "greet",
    "wave",
  ]);
  for (const { metadata } of immutable) {
    const name = metadata.labels?.["watchfire.dev/function"];
    expect(metadata.name).toMatch(new RegExp(`^${fixture.account}-${name}-[0-9a-f]{16}$`));
    expect(metadata.labels?.["app.kubernetes.io/managed-by"]).toBeUndefined();
    expect(metadata.managedFields?.map(({ manager }) => manager)).toEqual(["watchfire-deploy"]);
  }
  const objects = await fixture.objects();
  expect(objects).toContain(`ServiceAccount/${home}/W-greet`);
  expect(objects).toContain(`Role/${team.name}/W-greet.${home}`);
});

test("deploying the same again writes nothing, from another machine's folder of another name as well", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const elsewhere = await CatalogFixture.create();
  for (const each of [fixture, elsewhere]) await each.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const versions = async () => (await fixture.configMaps()).map(({ metadata }) => metadata.resourceVersion);
  const before = await versions();
  await rename(elsewhere.functions, `${elsewhere.functions}-too`);
  const of = ["--service-account", fixture.account, "--functions", `${elsewhere.functions}-too`];
  const { stdout } = await elsewhere.tryDeploy(...of);
  expect(stdout).toMatch(/^greet +unchanged/);
  expect(await versions()).toEqual(before);
});

test("deploy -o json prints one document: each function's outcome, what was deleted, edits and warnings", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch(), spec: grant(home, "get", "patch") });
  const { stdout, stderr, status } = await fixture.tryDeploy("-o", "json");
  expect(status).toBe(0);
  const answer = JSON.parse(stdout);
  expect(answer).toMatchObject({
    namespace: home,
    account: fixture.account,
    functions: [{ name: "greet", fate: "created", withoutSourceMap: false }],
    deleted: [],
    prunedEverywhere: true,
    unsigned: false,
    edits: [],
    warnings: [{ code: "WF_RBAC_OWN_OBJECTS" }],
  });
  const [{ configMap, bytes }] = answer.functions;
  expect((await fixture.configMaps()).map(({ metadata }) => metadata.name)).toContain(configMap);
  expect(bytes).toBeGreaterThan(100);
  expect(stderr).toContain("deployed the set default as revision 1 for the runtime");
  await fixture.remove("greet");
  await fixture.define("wave", { watch: team.watch() });
  const next = JSON.parse((await fixture.tryDeploy("-o", "json", "--yes")).stdout);
  expect(next.functions).toEqual([
    { name: "greet", fate: "removed", configMap: null, bytes: null, withoutSourceMap: false },
    expect.objectContaining({ name: "wave", fate: "created" }),
  ]);
  expect(next.deleted).toContain(`ConfigMap ${home}/${configMap}`);
});

test("deploy --dry-run -o json prints what a deployment would print, writes nothing, and ends with 3", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch(), spec: grant(team.name, "get") });
  const dryRun = () => fixture.tryDeploy("--dry-run", "-o", "json");
  const first = await dryRun();
  expect([first.status, first.stderr, await fixture.objects(), await fixture.kept()]).toEqual([3, "", [], []]);
  const would = JSON.parse(first.stdout);
  expect(would).toMatchObject({
    set: "default",
    functions: [{ name: "greet", fate: "created" }],
    rights: expect.arrayContaining([`created ServiceAccount ${home}/${fixture.account}-greet`, "  + get configmaps"]),
    changes: true,
    deleted: [],
    edits: [],
    revision: 1,
  });
  const did = JSON.parse((await fixture.tryDeploy("-o", "json")).stdout);
  expect(did).toEqual(would);
  await fixture.define("greet", {
    watch: team.watch(),
    spec: { ...grant(team.name, "patch"), delivery: { mode: "Latest" } },
  });
  const before = await fixture.versions();
  const second = await dryRun();
  expect([second.status, await fixture.versions()]).toEqual([3, before]);
  expect(JSON.parse(second.stdout)).toMatchObject({
    functions: [{ name: "greet", fate: "changed" }],
    rights: [expect.stringMatching(/^changed Role /), "  + patch configmaps", "  - get configmaps"],
    deleted: [expect.stringMatching(/^ConfigMap /)],
    changes: true,
    revision: 2,
  });
  await fixture.deploy();
  const third = await dryRun();
  expect([third.status, JSON.parse(third.stdout)]).toMatchObject([0, { changes: false, rights: [], revision: 2 }]);
});

test("what was built deploys as its sources do, by the hashes of its lock, and nothing of it where a byte differs", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  for (const name of ["greet", "wave"])
    await fixture.define(name, { watch: team.watch(), spec: grant(team.name, "get") });
  const out = join(fixture.folder, "build");
  const built = await watchfire(["build", "--functions", fixture.functions, "--out", out]);
  expect([built.status, built.stderr]).toEqual([0, ""]);

  const handler = join(out, "wave", "handler.js");
  const script = await readFile(handler, "utf8");
  await writeFile(handler, `${script} `);
  const { status, stderr } = await fixture.tryDeploy("--functions", out);
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^WF_BUILD_DAMAGED /)]);
  expect(await fixture.objects()).toEqual([]);

  await writeFile(handler, script);
  expect(await fixture.deploy("--functions", out)).toMatchObject({ greet: "created", wave: "created" });
  const lock = JSON.parse(await readFile(join(out, "watchfire.lock.json"), "utf8"));
  const hashes = lock.functions.map(
    ({ name, sha256 }: { name: string; sha256: string }) => `${fixture.account}-${name}-${sha256.slice(0, 16)}`,
  );
  const names = (await fixture.configMaps()).filter(({ immutable }) => immutable).map(({ metadata }) => metadata.name);
  expect(names.sort()).toEqual(hashes);
  expect(await fixture.deploy()).toMatchObject({ greet: "unchanged", wave: "unchanged" });
});

test("a fault in one function leaves all of them undone, and says where it is", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("good", { watch: team.watch() });
  await fixture.define("bad", { watch: team.watch(), work: "}; const nothing = ; const more = () => {" });
  const { status, stdout, stderr } = await fixture.tryDeploy();
  expect([status, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^WF_BUNDLE_SYNTAX \S*bad\/handler\.ts:\d+:\d+/);
  expect(await fixture.objects()).toEqual([]);
});

test("a handler that does not load is refused as by `watchfire validate`, and the version before it stays", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const before = await fixture.objects();
  await writeFile(
    join(fixture.functions, "greet", "handler.ts"),
    "export default () => {};\nthrow new Error('early');\n",
  );
  const { status, stdout, stderr } = await fixture.tryDeploy();
  expect([status, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^WF_SANDBOX_LOAD \S*greet\/handler\.ts:2:\d+: the module's top level threw Error: early/);
  expect(await fixture.objects()).toEqual(before);
});

test("namespaces that do not exist are named with what to do, all at once, and all but the rights in them is deployed", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("good", { watch: team.watch() });
  await fixture.define("lost", { watch: team.watch(), spec: grant("no-such-one", "get") });
  await fixture.define("found", { watch: team.watch(), spec: grant("nor-this-one", "get") });
  const { status, stderr } = await fixture.tryDeploy();
  expect([status, /^WF_\w+/m.exec(stderr)?.[0]]).toEqual([1, "WF_RBAC_NO_NAMESPACE"]);
  expect(stderr).toContain("no-such-one (for lost)");
  expect(stderr).toContain("`kubectl create namespace no-such-one && kubectl create namespace nor-this-one`");
  const objects = (await fixture.objects()).join("\n");
  for (const name of ["good", "lost", "found"]) expect(objects).toContain(`ServiceAccount/${home}/W-${name}`);
  expect(objects).not.toMatch(/no-such-one|nor-this-one/);
});

test("a function too large for a ConfigMap is refused with its size, and nothing is deployed", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("large", { watch: team.watch(), work: "ctx.log.info((await import('./data.ts')).default);" });
  // Random bytes compress from base64 to three quarters, which is their original size.
  const noise = randomBytes(1_100_000).toString("base64");
  await writeFile(join(fixture.functions, "large", "data.ts"), `export default "${noise}";`);
  const { status, stderr } = await fixture.tryDeploy();
  expect([status, stderr.split(" ")[0]]).toEqual([1, "WF_DEPLOYED_TOO_LARGE:"]);
  expect(stderr).toMatch(/\d+ KiB packed, \d+ KiB of code\); a ConfigMap takes 1024 KiB/);
  expect(await fixture.objects()).toEqual([]);
});

test("an empty folder removes nothing", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  await fixture.remove("greet");
  expect(await readdir(fixture.functions)).toEqual([]);
  const { status, stderr } = await fixture.tryDeploy();
  expect([status, stderr.split(" ")[0]]).toEqual([1, "WF_DEPLOYED_EMPTY"]);
  expect((await fixture.index()).functions.map(({ name }) => name)).toEqual(["greet"]);
});

test("at each moment of a change the index names ConfigMaps that are there, and the superseded one is gone at the end", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.define("wave", { watch: team.watch() });
  await fixture.deploy();
  const from = (await admin.get(configMaps, { labelSelector: fixture.selector })).metadata.resourceVersion;
  const there = new Map((await fixture.configMaps()).map((each) => [each.metadata.name, each]));
  using history = await admin.watch(configMaps, { resourceVersion: from, labelSelector: fixture.selector });
  await fixture.define("greet", { watch: team.watch(), work: "ctx.log.info('new');" });
  await fixture.deploy();
  await admin.post(configMaps, {
    metadata: { name: `${fixture.account}-end`, labels: { "watchfire.dev/runtime": fixture.account } },
  });
  for (const { type, object } of await history.until((event) => event.object.metadata.name.endsWith("-end"))) {
    if (type === "DELETED") there.delete(object.metadata.name);
    else there.set(object.metadata.name, object);
    const index = JSON.parse(there.get(`${fixture.account}-functions`)?.data["functions.json"]);
    expect(index.functions.map((entry: { name: string }) => entry.name)).toEqual(["greet", "wave"]);
    for (const { configMap } of index.functions) expect([...there.keys()]).toContain(configMap);
  }
  const kept = (await fixture.index()).functions.map(({ configMap }) => configMap);
  expect([...there.keys()].filter((name) => /-[0-9a-f]{16}$/.test(name)).sort()).toEqual(kept.sort());
});

test("a function that is gone takes its account and rights along; what `watchfire rbac` made stays", async () => {
  const team = await createTeam();
  const other = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("stays", { watch: team.watch(), spec: grant(team.name, "get") });
  await fixture.deploy();
  const alone = await fixture.objects();
  const byHand = {
    metadata: {
      name: `${fixture.account}-image`,
      labels: { "watchfire.dev/runtime": fixture.account, "watchfire.dev/namespace": home },
    },
  };
  await admin.post(`/api/v1/namespaces/${home}/serviceaccounts`, byHand);
  await fixture.define("goes", { watch: other.watch(), spec: grant(other.name, "get") });
  await fixture.deploy();
  expect(await fixture.objects()).toContain(`Role/${other.name}/W-goes.${home}`);
  await fixture.remove("goes");
  expect(await fixture.deploy("--yes")).toEqual({ goes: "removed", stays: "unchanged" });
  expect(await fixture.objects()).toEqual([...alone, `ServiceAccount/${home}/W-image`].sort());
});

test("a function by another name is told as a removal and an addition, which starts without checkpoints", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  expect((await fixture.tryDeploy()).stderr).not.toContain("starts without checkpoints");
  await fixture.remove("greet");
  await fixture.define("salute", { watch: team.watch() });
  const { status, stdout, stderr } = await fixture.tryDeploy("--yes");
  expect(stdout).toMatch(/^greet +removed\nsalute +created/);
  expect(stderr).toMatch(/^warning: greet is removed and salute is new: .* starts without checkpoints, /m);
  expect(status).toBe(0);
});

test("an edit of a manifest is told with what it does, and no edit is not", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.tryDeploy();
  expect((await fixture.tryDeploy()).stdout).not.toContain("changed from");
  await fixture.define("greet", { watch: team.watch(), spec: { delivery: { mode: "Reconcile" } } });
  const { status, stdout } = await fixture.tryDeploy();
  expect(stdout).toMatch(/^greet: mode changed from All to Reconcile: events on disk wake their keys$/m);
  expect(status).toBe(0);
});

test("rights that a new version does without are there until it has taken over", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch(), spec: grant(team.name, "get", "delete") });
  await fixture.deploy();
  const old = (await admin.get(fixture.indexPath)).data["functions.json"];
  const { resourceVersion } = (await admin.get(configMaps)).metadata;
  const fieldSelector = `metadata.name=${fixture.account}-greet.${home}`;
  using roles = await admin.watch(`${rbac}/namespaces/${team.name}/roles`, { resourceVersion, fieldSelector });
  using sets = await admin.watch(configMaps, {
    resourceVersion,
    fieldSelector: `metadata.name=${fixture.account}-functions`,
  });
  await fixture.define("greet", { watch: team.watch(), spec: grant(team.name, "get", "patch") });
  await fixture.deploy();
  const verbs = ({ rules }: Body): string[] =>
    rules
      .filter(({ resources }: { resources: string[] }) => resources.includes("configmaps"))
      .flatMap((rule: { verbs: string[] }) => rule.verbs);
  const wide = await roles.next();
  const narrow = await roles.next();
  // The lock is written first, and changes no set.
  const index = (await sets.until(({ object }) => object.data["functions.json"] !== old)).at(-1) as WatchEvent;
  expect([new Set(verbs(wide.object)), verbs(narrow.object).sort()]).toEqual([
    new Set(["get", "patch", "delete"]),
    ["get", "patch"],
  ]);
  const order = [wide, index, narrow].map(({ object }) => Number(object.metadata.resourceVersion));
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});

test("of two deployments at once, what remains is whole, and one that came too late is told", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const rival = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch(), work: "ctx.log.info('ours');" });
  await rival.define("greet", { watch: team.watch(), work: "ctx.log.info('theirs');" });
  const runs = await Promise.all([fixture.tryDeploy(), rival.tryDeploy("--service-account", fixture.account)]);
  for (const { status, stderr } of runs) {
    // It may have waited before, with a message.
    if (status !== 0) expect([status, stderr]).toEqual([1, expect.stringMatching(/^WF_DEPLOYED_CONFLICT: /m)]);
  }
  expect(runs.some(({ status }) => status === 0)).toBe(true);
  expect((await fixture.configMapOf("greet")).immutable).toBe(true);
});
