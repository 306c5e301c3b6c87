// Deployments are recorded as revisions, and rolled back to.
import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { admin, createTeam } from "../scenarios/cluster.ts";
import type { Body } from "../target/client.ts";
import type { Team } from "../tools/team.ts";
import { CatalogFixture, configMaps, home, makeKeys } from "./fixture.ts";

// Each test runs the command line several times, as processes.
vi.setConfig({ testTimeout: 90_000 });

interface Listed {
  readonly number: number;
  readonly by: string | null;
  readonly byUnknown: string | null;
  readonly git: { readonly commit: string; readonly dirty: boolean } | null;
  readonly message: string;
  readonly digest: string;
}

const revisions = async (fixture: CatalogFixture, ...more: string[]): Promise<{ current: number; all: Listed[] }> => {
  const { stdout } = await fixture.run("revisions", "--set", "default", "-o", "json", ...more);
  const { current, revisions: all } = JSON.parse(stdout);
  return { current, all };
};

const rollback = (fixture: CatalogFixture, ...more: string[]) => fixture.run("rollback", "--set", "default", ...more);

/** A function that logs a word, and may use verbs on ConfigMaps. */
const says = (team: Team, word: string, ...verbs: string[]) => ({
  watch: team.watch(),
  work: `ctx.log.info("${word}");`,
  ...(verbs.length > 0 && {
    spec: { permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs, namespaces: [team.name] }] },
  }),
});

/** A fixture whose function was deployed with the words `one` and `two`. */
async function twice(...more: string[]) {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", says(team, "one", "get"));
  await fixture.deploy(...more);
  await fixture.define("greet", says(team, "two", "patch"));
  await fixture.deploy(...more);
  return { team, fixture };
}

test("each deployment that changes something is a revision with account, commit and message, and no other is", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", fixture.folder, "-c", "user.name=a", "-c", "user.email=a@b", ...args], {
      encoding: "utf8",
    }).trim();
  await fixture.define("greet", says(team, "one"));
  await fixture.deploy("-m", "before git");
  git("init", "-q");
  await writeFile(join(fixture.folder, ".gitignore"), "kubeconfig\n");
  git("add", ".");
  git("commit", "-q", "-m", "first");
  const commit = git("rev-parse", "HEAD");
  await fixture.deploy("-m", "the same again");
  await fixture.define("wave", says(team, "one"));
  await fixture.deploy("-m", "with wave\u001b[2J");
  git("add", ".");
  git("commit", "-q", "-m", "second");
  await fixture.define("greet", says(team, "two"));
  git("commit", "-q", "-a", "-m", "third");
  const third = git("rev-parse", "HEAD");
  await fixture.deploy();
  const { current, all } = await revisions(fixture);
  expect(current).toBe(3);
  expect(all.map(({ number, git: of, message }) => ({ number, git: of, message }))).toEqual([
    { number: 3, git: { commit: third, dirty: false }, message: "" },
    { number: 2, git: { commit, dirty: true }, message: "with wave\u001b[2J" },
    { number: 1, git: null, message: "before git" },
  ]);
  const self = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const me = await admin.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", self);
  expect(new Set(all.map(({ by }) => by))).toEqual(new Set([me.status.userInfo.username]));
  const { stdout } = await fixture.run("revisions", "--set", "default");
  expect(stdout.split("\n")[1]).toMatch(
    new RegExp(`^3 \\(current\\) +\\d{4}-\\S+Z +\\S+ +${third.slice(0, 10)} +[0-9a-f]{10} +2$`),
  );
  expect(stdout).toContain("with wave\\u001b[2J");
});

test("a rollback puts back code, manifest and rights of the revision before, as a new one, and checkpoints stay", async () => {
  const { team, fixture } = await twice();
  const runtime = await fixture.install();
  await runtime.start();
  await team.make("a");
  await runtime.hears("greet", 1);
  await runtime.quiet();
  const said = () => runtime.lines.filter(({ msg }) => msg === "one" || msg === "two").map(({ msg }) => msg);
  expect(said()).toEqual(["two"]);
  const { status, stdout, stderr } = await rollback(fixture, "-m", "two was wrong");
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^greet +changed +\S+ +\d+ KiB\ndeleted ConfigMap /)]);
  expect(stderr).toMatch(/^deployed the set default as revision 3 for the runtime /);
  await runtime.sees("the old code is loaded", () => runtime.lines.some(({ msg }) => msg === "change loaded"));
  await team.make("b");
  await runtime.hears("greet", 2);
  await runtime.quiet();
  expect([said(), runtime.told("greet")]).toEqual([
    ["two", "one"],
    ["Added a=1", "Added b=1"],
  ]);
  const role = `/apis/rbac.authorization.k8s.io/v1/namespaces/${team.name}/roles/${fixture.account}-greet.${home}`;
  const { rules }: Body = await admin.get(role);
  expect(rules).toContainEqual({ apiGroups: [""], resources: ["configmaps"], verbs: ["get"] });
  expect(JSON.stringify(rules)).not.toContain('["configmaps"],"verbs":["patch"]');
  const { current, all } = await revisions(fixture);
  expect([current, all[0]?.message]).toEqual([3, "rolled back to revision 1: two was wrong"]);
  expect(all[0]?.digest).toBe(all[2]?.digest);
  // The runtime sees neither the records nor the copies.
  expect(await fixture.configMaps()).toHaveLength(2);
  expect((await fixture.copies()).map(({ metadata }) => metadata.name)).toEqual([
    expect.stringMatching(`^${fixture.account}-kept\\.default\\.greet-`),
  ]);
  // The revision before the current one.
  expect((await rollback(fixture)).stderr).toMatch(/as revision 4 /);
  expect((await revisions(fixture)).all[0]).toMatchObject({ message: "rolled back to revision 2" });
});

test("a dry run of a rollback shows what would change, and a removal is asked for", async () => {
  const { team, fixture } = await twice();
  await fixture.define("wave", says(team, "wave"));
  await fixture.deploy();
  const before = await fixture.versions();
  const shown = await rollback(fixture, "--to", "1", "--dry-run");
  expect([shown.status, shown.stderr]).toEqual([3, ""]);
  expect(shown.stdout).toMatch(/^greet +changed .*\nwave +removed\n/);
  expect(shown.stdout).toMatch(/^changed Role \S+\n {2}\+ get configmaps\n {2}- patch configmaps$/m);
  const refused = await rollback(fixture);
  expect([refused.status, refused.stdout]).toEqual([1, ""]);
  expect(refused.stderr).toMatch(/^WF_DEPLOYED_REMOVES: this would remove wave from the set default/);
  expect([await fixture.versions(), (await revisions(fixture)).current]).toEqual([before, 3]);
  expect((await rollback(fixture, "--yes")).stdout).toMatch(/^greet +unchanged .*\nwave +removed\n/);
  expect((await rollback(fixture, "--to", "4", "--dry-run")).status).toBe(0);
});

test("a revision that is not there is refused with those that are", async () => {
  const { fixture } = await twice();
  const { status, stderr } = await rollback(fixture, "--to", "7");
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/^WF_DEPLOYED_NO_REVISION: the set default has no revision 7; it has 2, 1; /),
  ]);
  expect((await rollback(fixture, "--to", "x")).stderr).toMatch(/^WF_CLI_USAGE: --to takes the number of a revision/);
  const other = await CatalogFixture.create();
  expect((await rollback(other)).stderr).toMatch(/^WF_DEPLOYED_NO_REVISION: the set default has no revision before/);
});

test("a revision whose code is gone or was changed is refused, and nothing is written", async () => {
  const { fixture } = await twice();
  const [copy] = await fixture.copies();
  const path = `${configMaps}/${copy?.metadata.name}`;
  const before = await fixture.versions();
  const { metadata, ...parts } = copy as Body;
  await admin.delete(path);
  const gone = await rollback(fixture);
  expect([gone.status, gone.stderr]).toEqual([
    1,
    expect.stringMatching(
      /^WF_DEPLOYED_REVISION_GONE configmap\/\S+: of the revision 1 of the set default, the function greet is missing;/,
    ),
  ]);
  const { name, labels } = metadata;
  const [own] = (await fixture.configMaps()).filter(({ immutable }) => immutable);
  await admin.post(configMaps, { ...parts, data: own?.data, metadata: { name, labels } });
  expect((await rollback(fixture)).stderr).toContain("the function greet is not what was deployed");
  expect([await fixture.versions(), (await revisions(fixture)).current]).toEqual([before, 2]);
});

test("ten revisions are kept, those with the same code share one copy, and another set's are left alone", async () => {
  const { team, fixture } = await twice();
  const other = await CatalogFixture.create();
  const asOther = ["--set", "team-b", "--service-account", fixture.account];
  for (const word of ["a", "b"]) {
    await other.define("wave", says(team, word));
    await other.deploy(...asOther);
  }
  for (let number = 3; number <= 12; number += 1) {
    await fixture.define("greet", says(team, number % 2 ? "one" : "two"));
    await fixture.deploy();
  }
  const { all } = await revisions(fixture);
  expect(all.map(({ number }) => number)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
  expect((await fixture.copies()).map(({ metadata }) => metadata.labels?.["watchfire.dev/set"]).sort()).toEqual([
    "default",
    "team-b",
  ]);
  expect((await rollback(fixture, "--to", "3")).status).toBe(0);
  expect((await rollback(fixture, "--set", "team-b")).stdout).toMatch(/^wave +changed/);
  expect((await rollback(fixture, "--set", "team-b", "--to", "3")).stdout).toMatch(/^wave +unchanged/);
});

test("what a version without revisions deployed is recorded by the next deployment, and rolled back to", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", says(team, "one"));
  await fixture.deploy();
  for (const { metadata } of await fixture.kept()) await admin.delete(`${configMaps}/${metadata.name}`);
  await admin.patch(fixture.indexPath, { data: { revision: null } });
  await fixture.define("greet", says(team, "two"));
  const keys = makeKeys(fixture.folder);
  await fixture.deploy("--sign", keys.private);
  const { current, all } = await revisions(fixture);
  expect([current, all.map(({ number, by }) => [number, by === null])]).toEqual([
    2,
    [
      [2, false],
      [1, true],
    ],
  ]);
  expect(all[1]?.byUnknown).toContain("a version that records no revisions");
  // Nobody signed it then.
  expect((await rollback(fixture, "--sign", keys.private)).stderr).toMatch(/^WF_DEPLOYED_UNTRUSTED .* no signature/);
  expect((await rollback(fixture)).stdout).toMatch(/^greet +changed/);
});

test("an undeployed set leaves no revision", async () => {
  const { fixture } = await twice();
  expect((await fixture.kept()).length).toBe(3);
  expect((await fixture.run("undeploy", "--set", "default", "--yes")).status).toBe(0);
  expect(await fixture.kept()).toEqual([]);
});

test("signing puts back only what a given key signed, and a runtime that requires signatures takes it up", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const [old, key, foreign] = [makeKeys(fixture.folder), makeKeys(fixture.folder), makeKeys(fixture.folder)];
  for (const [word, sign] of [["unsigned"], ["foreign", foreign], ["old", old], ["new", key]] as const) {
    await fixture.define("greet", says(team, word));
    await fixture.deploy(...(sign ? ["--sign", sign.private] : []));
  }
  const runtime = await fixture.install({ trust: fixture.trust(key.public) });
  await runtime.start();
  const sign = ["--sign", key.private];
  for (const [to, why] of [
    ["1", /there is no signature/],
    ["2", /the signature is by the key/],
    ["3", /the signature is by the key/],
  ] as const) {
    const { status, stderr } = await rollback(fixture, "--to", to, ...sign);
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^WF_DEPLOYED_UNTRUSTED configmap/)]);
    expect(stderr).toMatch(why);
  }
  expect((await rollback(fixture, "--to", "3", ...sign, "--trust", old.public)).status).toBe(0);
  await runtime.sees("it is loaded", () => runtime.lines.some(({ msg }) => msg === "change loaded"));
  await team.make("a");
  await runtime.sees("the old code runs", () => runtime.lines.some(({ msg }) => msg === "old"));
  expect(await runtime.status()).not.toHaveProperty("deployment");
  // A record is signed whole, with its number.
  const [record] = (await fixture.kept()).filter(({ metadata }) => metadata.name?.endsWith(".4"));
  const { name, labels } = record?.metadata ?? {};
  const changed = record?.data["revision.json"].replace(/"message":"[^"]*"/, '"message":"other"');
  await admin.delete(`${configMaps}/${name}`);
  await admin.post(configMaps, {
    ...record,
    data: { ...record?.data, "revision.json": changed },
    metadata: { name, labels },
  });
  expect((await rollback(fixture, "--to", "4", ...sign)).stderr).toMatch(
    /^WF_DEPLOYED_UNTRUSTED .* the signature is of other content/,
  );
  expect((await rollback(fixture, "--to", "1")).stderr).toContain("a runtime with --trust refuses it");
});

test("an object of somebody else under the next revision's name is named with what to do, and nothing is deployed", async () => {
  const { team, fixture } = await twice();
  const name = `${fixture.account}-revision.default.3`;
  await admin.post(configMaps, { metadata: { name }, data: { a: "b" } });
  await fixture.define("greet", says(team, "three"));
  const { status, stderr } = await fixture.tryDeploy();
  expect(status).toBe(1);
  expect(stderr).toMatch(
    new RegExp(`^WF_DEPLOYED_CONFLICT: .*${name}.*already exists; .*look at it, and delete it`, "m"),
  );
  expect((await revisions(fixture)).current).toBe(2);
  await admin.delete(`${configMaps}/${name}`);
  await fixture.deploy();
  expect((await revisions(fixture)).current).toBe(3);
});

test("the runtime logs who deployed what it takes up, and why; a rollback is one, and a restart says that nothing is new", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const runtime = await fixture.install();
  await runtime.start();
  const audit = () => runtime.lines.filter(({ msg }) => msg === "audit").map(({ time: _, at: __, ...line }) => line);
  const logged = (count: number) => runtime.sees(`${count} lines`, () => audit().length === count);
  await fixture.define("greet", says(team, "one"));
  await fixture.deploy("-m", "INC-1");
  await logged(1);
  await fixture.define("greet", says(team, "two"));
  await fixture.deploy();
  await logged(2);
  await rollback(fixture, "-m", "two is slow");
  await logged(3);
  await runtime.kill();
  await runtime.start();
  await logged(4);
  const by = { level: "info", who: "kubernetes-admin", set: "default", functions: ["greet"], msg: "audit" };
  expect(audit()).toEqual([
    { ...by, verb: "deploy", revision: 1, reason: "INC-1", result: "done" },
    { ...by, verb: "deploy", revision: 2, result: "done" },
    { ...by, verb: "rollback", revision: 3, reason: "two is slow", result: "done" },
    { ...by, verb: "rollback", revision: 3, reason: "two is slow", result: "in use since the start" },
  ]);
});
