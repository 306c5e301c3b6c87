// `deploy --output yaml` prints a set for Git, and `deploy --code-only` writes no rights.
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { parseAllDocuments } from "yaml";
import { watchfire } from "../cli/run.ts";
import { admin, cluster, createTeam } from "../scenarios/cluster.ts";
import type { Body } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import type { Team } from "../tools/team.ts";
import { CatalogFixture, configMaps, home, makeKeys } from "./fixture.ts";

// Each test runs the command line several times, as processes.
vi.setConfig({ testTimeout: 90_000 });

const grant = (team: Team, ...verbs: string[]) => ({
  watch: team.watch(),
  spec: { permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs, namespaces: [team.name] }] },
});

/** Renders a fixture's folder without a cluster. */
const render = ({ functions, account }: CatalogFixture, more: readonly string[] = [], env: NodeJS.ProcessEnv = {}) => {
  const of = ["--functions", functions, "--service-account", account, "--namespace", home, "--set", "team-a"];
  return watchfire(["deploy", ...of, "--output", "yaml", ...more], env);
};

const documentsOf = (text: string): Body[] => parseAllDocuments(text).map((document) => document.toJS());

test("the rendered objects are those that a deployment writes, the same text from any folder, and need no cluster", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("wave", grant(team, "patch"));
  await fixture.define("greet", grant(team, "get"));
  const { status, stdout, stderr } = await render(fixture);
  expect([status, stderr, await fixture.objects()]).toEqual([0, "", []]);
  const objects = documentsOf(stdout);
  const order = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace} ${metadata.name}`);
  expect(order.at(-1)).toBe(`ConfigMap ${home} ${fixture.account}-functions.team-a`);
  expect(order.slice(0, 2)).toEqual(
    ["greet", "wave"].map((name) => `ServiceAccount ${home} ${fixture.account}-${name}`),
  );
  await fixture.deploy("--set", "team-a");
  const bodies = await fixture.bodies();
  // The lock of all sets is not one of them.
  expect(objects).toHaveLength(bodies.length - 1);
  for (const { kind, metadata, immutable: _, ...content } of objects) {
    const at = bodies.find(
      ({ name }) => name === `${kind}/${metadata.namespace}/${metadata.name.replace(fixture.account, "W")}`,
    );
    const found: Body = await admin.get(at?.path ?? "");
    expect([found.metadata.labels, found]).toMatchObject([metadata.labels, content]);
  }
  await rename(fixture.functions, `${fixture.functions}-too`);
  expect((await render(fixture, ["--functions", `${fixture.functions}-too`])).stdout).toBe(stdout);
});

test("a runtime takes up the rendered objects, and their next version, in whatever order they are applied", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const runtime = await fixture.install();
  await runtime.start();
  const apply = async (objects: readonly Body[]) => {
    for (const object of objects) {
      const { kind, metadata } = object;
      if (kind !== "ConfigMap") continue;
      await admin.apply(`${configMaps}/${metadata.name}`, object, "git", { force: true });
    }
  };
  await fixture.define("greet", { watch: team.watch() });
  await apply(documentsOf((await render(fixture)).stdout).toReversed());
  await team.make("a");
  await runtime.hears("greet", 1);
  await fixture.define("greet", { watch: team.watch(), work: "ctx.log.info('second');" });
  await apply(documentsOf((await render(fixture)).stdout));
  await runtime.sees("the new code is loaded", () => runtime.lines.some(({ msg }) => msg === "change loaded"));
  await team.make("b");
  await runtime.sees("it runs", () => runtime.lines.some(({ msg }) => msg === "second"));
  // The command line continues from there.
  expect(await fixture.deploy("--set", "team-a")).toEqual({ greet: "unchanged" });
});

test("a signed rendering is stable with SOURCE_DATE_EPOCH, and a wrong option is refused", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const keys = makeKeys(fixture.folder);
  await fixture.define("greet", { watch: team.watch() });
  const sign = ["--sign", keys.private];
  const signed = await render(fixture, sign, { SOURCE_DATE_EPOCH: "1700000000" });
  expect(await render(fixture, sign, { SOURCE_DATE_EPOCH: "1700000000" })).toEqual(signed);
  const index = documentsOf(signed.stdout).at(-1);
  expect(JSON.parse(index?.data["signature.json"])).toMatchObject({ serial: 1_700_000_000_000 });
  const wrong = await render(fixture, sign, { SOURCE_DATE_EPOCH: "yesterday" });
  expect([wrong.status, wrong.stderr]).toEqual([
    1,
    expect.stringMatching(/^WF_CLI_ENVIRONMENT: SOURCE_DATE_EPOCH takes/),
  ]);
  expect((await render(fixture, ["--dry-run"])).stderr).toMatch(/^WF_CLI_USAGE: --output yaml writes nothing/);
});

/** A pipeline's account: it may write ConfigMaps in the runtime's namespace, and ask about rights if `mayAsk`. */
async function pipeline(fixture: CatalogFixture, mayAsk: boolean): Promise<string[]> {
  const name = `${fixture.account}-pipeline`.replace("wf-", "ci-");
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  await admin.post(`/api/v1/namespaces/${home}/serviceaccounts`, { metadata: { name } });
  const verbs = ["get", "list", "create", "update", "patch", "delete"];
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs }];
  const subjects = [{ kind: "ServiceAccount", name, namespace: home }];
  const refer = (kind: string, to: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind, name: to });
  await admin.post(`${rbac}/namespaces/${home}/roles`, { metadata: { name }, rules });
  const binding = { metadata: { name }, roleRef: refer("Role", name), subjects };
  await admin.post(`${rbac}/namespaces/${home}/rolebindings`, binding);
  const ask = [{ apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] }];
  await admin.post(`${rbac}/clusterroles`, { metadata: { name }, rules: mayAsk ? ask : [] });
  await admin.post(`${rbac}/clusterrolebindings`, {
    metadata: { name },
    roleRef: refer("ClusterRole", name),
    subjects,
  });
  const { status }: Body = await admin.post(`/api/v1/namespaces/${home}/serviceaccounts/${name}/token`, { spec: {} });
  const file = join(fixture.folder, name);
  const access = { url: cluster.url, ca: cluster.caCertificate, token: status.token };
  await writeFile(file, kubeconfigOf(access, home));
  return ["--code-only", "--kubeconfig", file];
}

test("a pipeline without rights on RBAC writes code where the rights suffice, and otherwise is told which are missing", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const asPipeline = await pipeline(fixture, true);
  await fixture.define("greet", grant(team, "get"));
  const none = await fixture.tryDeploy(...asPipeline);
  expect([none.status, none.stdout, await fixture.objects()]).toEqual([1, "", []]);
  expect(none.stderr).toMatch(/-greet lacks 3 of 3 rights; nothing was written; .*\n {2}missing: /);
  const gone = (await fixture.tryDeploy("--code-only")).stderr;
  expect(gone).toContain(`WF_DEPLOYED_LACKS_RIGHTS: there is no ServiceAccount ${home}/${fixture.account}-greet; `);
  await fixture.deploy();
  const rights = async () => (await fixture.versions()).filter((each) => !each.startsWith("ConfigMap"));
  const before = await rights();
  await fixture.define("greet", { ...grant(team, "get"), work: "await 0;" });
  expect((await fixture.tryDeploy(...asPipeline)).stdout).toMatch(/^greet +changed/);
  expect((await fixture.run("revisions", "--set", "default")).stdout).toMatch(/^2 \(current\) .*:ci-\S+-pipeline /m);
  const whole = await fixture.versions();
  await fixture.define("greet", grant(team, "get", "patch"));
  for (const more of [[], ["--dry-run"]]) {
    const lacking = await fixture.tryDeploy(...asPipeline, ...more);
    expect([lacking.status, lacking.stdout]).toEqual([1, ""]);
    expect(lacking.stderr).toMatch(
      new RegExp(`^WF_DEPLOYED_LACKS_RIGHTS: the account ${home}/${fixture.account}-greet lacks 1 of \\d+ rights; `),
    );
    expect(lacking.stderr).toContain(`\n  missing: patch configmaps in namespace "${team.name}"\n`);
  }
  expect(await fixture.versions()).toEqual(whole);
  // The rights of a removed function stay until somebody who may takes them away.
  await fixture.remove("greet");
  await fixture.define("wave", grant(team, "get"));
  await fixture.deploy("--yes");
  await fixture.define("greet", grant(team, "get"));
  await fixture.deploy();
  await fixture.remove("greet");
  expect((await fixture.tryDeploy(...asPipeline, "--yes")).stdout).toMatch(/^greet +removed\nwave +unchanged/);
  expect(await fixture.objects()).toContain(`ServiceAccount/${home}/W-greet`);
  await fixture.deploy();
  expect(await fixture.objects()).not.toContain(`ServiceAccount/${home}/W-greet`);
  expect(before.length).toBeGreaterThan(4);
});

test("a pipeline that may not ask about rights is refused, and told what it lacks", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const asPipeline = await pipeline(fixture, false);
  await fixture.define("greet", grant(team, "get"));
  await fixture.deploy();
  await fixture.define("greet", { ...grant(team, "get"), work: "await 0;" });
  const before = await fixture.versions();
  const { status, stderr } = await fixture.tryDeploy(...asPipeline);
  expect(status).toBe(1);
  expect(stderr).toMatch(/^WF_DEPLOYED_LACKS_RIGHTS: the rights of the account \S+ cannot be seen; grant `create` on /);
  expect(await fixture.versions()).toEqual(before);
});
