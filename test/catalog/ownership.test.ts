// What belongs to somebody else is neither taken over nor removed by a deployment.
import { expect, onTestFinished, test, vi } from "vitest";
import { admin, createTeam } from "../scenarios/cluster.ts";
import { configMaps, home, Site } from "./site.ts";

// Each test runs the command line several times, as processes.
vi.setConfig({ testTimeout: 60_000 });

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const accounts = `/api/v1/namespaces/${home}/serviceaccounts`;

/** Makes an object that is nobody's of ours, until the test ends. */
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
    const site = await Site.create();
    const all = kind === "ClusterRole" ? { ...team.watch(), namespaceSelector: undefined } : team.watch();
    const permissions = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"], namespaces: [team.name] }];
    await site.define("greet", { watch: all, spec: { permissions } });
    const theirs = await make(path(team.name), { metadata: { name: name(site.account) }, ...body });
    const { status, stdout, stderr } = await site.tryDeploy();
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("WF_DEPLOYED_TAKEN: ");
    expect(stderr).toMatch(new RegExp(`the ${kind} \\S*${name(site.account)} is there`));
    expect(await admin.get(`${path(team.name)}/${name(site.account)}`)).toEqual(theirs);
    expect(await site.objects()).toEqual([]);
  },
);

test("two runtimes of which two functions would share an account share none", async () => {
  const team = await createTeam();
  const site = await Site.create();
  const other = await Site.create();
  await site.define("a-b", { watch: team.watch() });
  await other.define("b", { watch: team.watch() });
  await site.deploy();
  const before = await site.objects();
  const second = await other.tryDeploy("--service-account", `${site.account}-a`);
  expect(second.status).toBe(1);
  expect(second.stderr).toContain(`WF_DEPLOYED_TAKEN: the ServiceAccount ${home}/${site.account}-a-b is there`);
  expect(await site.objects()).toEqual(before);
});

test("what lacks one of the runtime's two labels is not removed with what is gone", async () => {
  const team = await createTeam();
  const site = await Site.create();
  await site.define("stays", { watch: team.watch() });
  await site.deploy();
  const names = { "watchfire.dev/runtime": site.account, "watchfire.dev/deployed": "true" };
  const elsewhere = { ...names, "watchfire.dev/namespace": "elsewhere" };
  for (const [suffix, labels] of Object.entries({ "-one": names, "-two": elsewhere })) {
    for (const path of [accounts, configMaps]) {
      await make(path, { metadata: { name: `${site.account}${suffix}`, labels } });
    }
  }
  const before = await site.objects();
  await site.define("goes", { watch: team.watch() });
  await site.deploy();
  await site.remove("goes");
  await site.deploy();
  expect(await site.objects()).toEqual(before);
});

test("all that is deployed carries the runtime's account and its namespace", async () => {
  const team = await createTeam();
  const site = await Site.create();
  await site.define("greet", { watch: team.watch() });
  await site.deploy();
  for (const { metadata } of await site.configMaps()) {
    expect(metadata.labels).toMatchObject({ "watchfire.dev/runtime": site.account, "watchfire.dev/namespace": home });
  }
});
