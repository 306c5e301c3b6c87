// A deployment neither takes over nor removes objects that belong to another owner.
import { expect, onTestFinished, test, vi } from "vitest";
import { admin, createTeam } from "../scenarios/cluster.ts";
import { CatalogFixture, configMaps, home } from "./fixture.ts";

// Each test runs the command line several times, as processes.
vi.setConfig({ testTimeout: 60_000 });

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const accounts = `/api/v1/namespaces/${home}/serviceaccounts`;

/** Creates an object without the runtime's labels. It is removed after the test. */
async function make(path: string, body: { readonly metadata: { readonly name: string; readonly labels?: object } }) {
  onTestFinished(async () => void (await admin.delete(`${path}/${body.metadata.name}`).catch(() => undefined)));
  return admin.post(path, body);
}

const readers = { rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"] }] };

test.each<[kind: string, path: (team: string) => string, name: (account: string) => string, body: object]>([
  ["ServiceAccount", () => accounts, (account) => `${account}-greet`, {}],
  ["ConfigMap", () => configMaps, (account) => `${account}-functions`, { data: { mine: "yes" } }],
  ["Role", (team) => `${rbac}/namespaces/${team}/roles`, (account) => `${account}-greet.${home}`, readers],
  ["ClusterRole", () => `${rbac}/clusterroles`, (account) => `${account}-greet.${home}.runtime`, readers],
])(
  "a %s of somebody else under a name that is needed is left as it is, and nothing is written",
  async (kind, path, name, body) => {
    const team = await createTeam();
    const fixture = await CatalogFixture.create();
    const all = kind === "ClusterRole" ? { ...team.watch(), namespaceSelector: undefined } : team.watch();
    const permissions = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"], namespaces: [team.name] }];
    await fixture.define("greet", { watch: all, spec: { permissions } });
    const theirs = await make(path(team.name), { metadata: { name: name(fixture.account) }, ...body });
    const { status, stdout, stderr } = await fixture.tryDeploy();
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("WF_DEPLOYED_TAKEN: ");
    expect(stderr).toMatch(new RegExp(`the ${kind} \\S*${name(fixture.account)} exists and does not belong`));
    expect(await admin.get(`${path(team.name)}/${name(fixture.account)}`)).toEqual(theirs);
    expect(await fixture.objects()).toEqual([]);
  },
);

test("two runtimes of which two functions would share an account share none", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const other = await CatalogFixture.create();
  await fixture.define("a-b", { watch: team.watch() });
  await other.define("b", { watch: team.watch() });
  await fixture.deploy();
  const before = await fixture.objects();
  const second = await other.tryDeploy("--service-account", `${fixture.account}-a`);
  expect(second.status).toBe(1);
  expect(second.stderr).toContain(
    `WF_DEPLOYED_TAKEN: the ServiceAccount ${home}/${fixture.account}-a-b exists and does not belong`,
  );
  expect(await fixture.objects()).toEqual(before);
});

test("what lacks one of the runtime's two labels is not removed with what is gone", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("stays", { watch: team.watch() });
  await fixture.deploy();
  const names = { "watchfire.dev/runtime": fixture.account, "watchfire.dev/deployed": "true" };
  const elsewhere = { ...names, "watchfire.dev/namespace": "elsewhere" };
  for (const [suffix, labels] of Object.entries({ "-one": names, "-two": elsewhere })) {
    for (const path of [accounts, configMaps]) {
      await make(path, { metadata: { name: `${fixture.account}${suffix}`, labels } });
    }
  }
  const before = await fixture.objects();
  await fixture.define("goes", { watch: team.watch() });
  await fixture.deploy();
  await fixture.remove("goes");
  await fixture.deploy("--yes");
  expect(await fixture.objects()).toEqual(before);
});

test("all that is deployed carries the runtime's account and its namespace", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  for (const { metadata } of await fixture.configMaps()) {
    expect(metadata.labels).toMatchObject({
      "watchfire.dev/runtime": fixture.account,
      "watchfire.dev/namespace": home,
    });
  }
});
