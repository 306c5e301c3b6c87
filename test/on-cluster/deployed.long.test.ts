import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { parse } from "yaml";
import type { Body } from "../target/client.ts";
import { admin, createNamespace, eventually, Kubectl, removeAtEnd, unique } from "../target/fixture.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { until } from "../tools/until.ts";
import { RuntimeProcess } from "../tools/watchfire-process.ts";

const root = join(import.meta.dirname, "../..");
const bin = join(root, "runtime/bin/watchfire.js");
const definition = join(root, "deploy/chart/files/functions.watchfire.dev.yaml");

const { access } = inject("shared");

/** Runs a watchfire command. Returns its standard output. */
const watchfire = async (...args: string[]) => (await promisify(execFile)(process.execPath, [bin, ...args])).stdout;

describe("a deployed function", () => {
  const account = "watchfire";
  const group = `${unique("never")}.example.com`;
  let home: string;
  let team: string;
  let folder: string;
  let kubectl: Kubectl;
  let runtime: RuntimeProcess;

  const watch = () => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    namespaceSelector: { matchNames: [team] },
    labelSelector: { matchLabels: { greet: "yes" } },
    events: ["Added", "Modified"],
  });

  async function define(name: string, body: string, spec: object = {}, into = "functions"): Promise<void> {
    const place = join(folder, into, name);
    await mkdir(place, { recursive: true });
    const manifest = {
      apiVersion: "watchfire.dev/v1alpha1",
      kind: "Function",
      metadata: { name },
      spec: { handler: "./handler.ts", triggers: [{ watch: watch() }], ...spec },
    };
    await writeFile(join(place, "function.yaml"), JSON.stringify(manifest));
    await writeFile(join(place, "handler.ts"), `export default async (event, ctx) => { ${body} };`);
  }

  const answers = (word: string) => ({
    body: `const { name, namespace } = event.object.metadata;
      if (event.object.data.answer !== "${word}" && event.object.data.ask === "${word}")
        await ctx.kube.patch({ apiVersion: "v1", kind: "ConfigMap", name, namespace }, { data: { answer: "${word}" } });`,
    spec: { permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["patch"], namespaces: [team] }] },
  });

  const deploy = (...more: string[]) =>
    watchfire(
      ...["deploy", "--functions", join(folder, "functions"), "--namespace", home],
      ...["--kubeconfig", join(folder, "admin"), ...more],
    );

  /** Creates an account with the rights of the page about rights to deploy. Returns its kubeconfig. */
  async function pipeline(name: string): Promise<string> {
    const page = await readFile(join(root, "runtime/docs/deploy-rights.md"), "utf8");
    const role = parse(/```\n(apiVersion[\s\S]*?)```/.exec(page)?.[1] ?? "");
    const elsewhere = role.rules.filter(({ apiGroups }: { apiGroups: string[] }) => apiGroups[0]?.startsWith("rbac"));
    const subjects = [{ kind: "ServiceAccount", name, namespace: home }];
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name };
    await admin.post(`/api/v1/namespaces/${home}/serviceaccounts`, { metadata: { name } });
    for (const [namespace, rules] of [[home, role.rules] as const, [team, elsewhere] as const]) {
      const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
      await admin.post(`${rbac}/roles`, { metadata: { name }, rules });
      await admin.post(`${rbac}/rolebindings`, { metadata: { name }, roleRef, subjects });
    }
    const { status }: Body = await admin.post(`/api/v1/namespaces/${home}/serviceaccounts/${name}/token`, { spec: {} });
    await writeFile(join(folder, name), kubeconfigOf({ url: access.url, ca: access.ca, token: status.token }, home));
    return join(folder, name);
  }

  /** Creates an account that may write ConfigMaps and ask about rights. Returns its kubeconfig. */
  async function coder(name: string): Promise<string> {
    const page = await readFile(join(root, "runtime/docs/gitops.md"), "utf8");
    const [rule, asks] = parse(/```\n( {2}- \{ apiGroups[\s\S]*?)```/.exec(page)?.[1] ?? "");
    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    const subjects = [{ kind: "ServiceAccount", name, namespace: home }];
    const refer = (kind: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind, name: `${home}-${name}` });
    const metadata = { name: `${home}-${name}` };
    await admin.post(`/api/v1/namespaces/${home}/serviceaccounts`, { metadata: { name } });
    await admin.post(`${rbac}/namespaces/${home}/roles`, { metadata, rules: [rule] });
    await admin.post(`${rbac}/namespaces/${home}/rolebindings`, { metadata, roleRef: refer("Role"), subjects });
    await admin.post(`${rbac}/clusterroles`, { metadata, rules: [asks] });
    await admin.post(`${rbac}/clusterrolebindings`, { metadata, roleRef: refer("ClusterRole"), subjects });
    for (const kind of ["clusterroles", "clusterrolebindings"]) removeAtEnd(`${rbac}/${kind}/${metadata.name}`);
    const { status }: Body = await admin.post(`/api/v1/namespaces/${home}/serviceaccounts/${name}/token`, { spec: {} });
    await writeFile(join(folder, name), kubeconfigOf({ url: access.url, ca: access.ca, token: status.token }, home));
    return join(folder, name);
  }

  const answered = (name: string, word: string) =>
    eventually(
      () => admin.get(`/api/v1/namespaces/${team}/configmaps/${name}`),
      (configMap: Body) => configMap.data.answer === word,
    );

  const ask = (name: string, word: string) =>
    admin.apply(
      `/api/v1/namespaces/${team}/configmaps/${name}`,
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels: { greet: "yes" } }, data: { ask: word } },
      "person",
    );

  beforeAll(async () => {
    home = await createNamespace();
    team = await createNamespace();
    kubectl = new Kubectl(home);
    folder = await mkdtemp(join(tmpdir(), "watchfire-deployed-"));
    await mkdir(join(folder, "none"));
    await mkdir(join(folder, "functions"));
    await writeFile(join(folder, "admin"), kubeconfigOf(access, home));
    await kubectl.ok(["apply", "-f", definition]);
    removeAtEnd("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/functions.watchfire.dev");
    const flags = ["--namespace", home, "--deployed", "--function-status"];
    await kubectl.ok(["apply", "-f", "-"], await watchfire("rbac", "--functions", join(folder, "none"), ...flags));
    const token: Body = await admin.post(`/api/v1/namespaces/${home}/serviceaccounts/${account}/token`, { spec: {} });
    const own = { url: access.url, ca: access.ca, token: token.status.token };
    await writeFile(join(folder, "runtime"), kubeconfigOf(own, home));
    const more = ["--deployed", "--function-status", "--identity", "function"];
    runtime = new RuntimeProcess(folder, join(folder, "runtime"), join(folder, "none"), more);
    await runtime.start();
  });
  afterAll(async () => {
    await runtime?.kill();
    await rm(folder, { recursive: true, force: true });
  });

  it("is brought, changed and taken away while the runtime runs, with no right but what `watchfire rbac` and `deploy` grant", async () => {
    const one = answers("one");
    await define("greet", one.body, one.spec);
    expect(await deploy()).toMatch(/^greet +created +watchfire-greet-[0-9a-f]{16}/);
    await ask("a", "one");
    await answered("a", "one");
    const two = answers("two");
    await define("greet", two.body, two.spec);
    expect(await deploy()).toMatch(/^greet +changed/);
    await ask("b", "two");
    await answered("b", "two");
    expect(await deploy()).toMatch(/^greet +unchanged/);
    const there = await kubectl.ok(["get", "configmaps", "-o", "name"]);
    expect(there.match(/watchfire-greet-[0-9a-f]{16}/g)).toHaveLength(1);
  });

  it("shows in `kubectl get functions`, with what is wrong named", async () => {
    await define("fails", "throw new Error('no luck');", {
      triggers: [{ watch: { ...watch(), fieldSelector: "metadata.name=c", events: ["Added"] } }],
      delivery: { retry: { maxAttempts: 1 } },
    });
    await define("early", "return;", { triggers: [{ watch: { apiVersion: `${group}/v1`, kind: "Widget" } }] });
    const names = { kind: "Widget", plural: "widgets" };
    const widget = {
      kind: "CustomResourceDefinition",
      spec: { group, scope: "Namespaced", names, versions: [{ name: "v1" }] },
    };
    await writeFile(join(folder, "functions", "early", "crd.yaml"), JSON.stringify(widget));
    await deploy();
    await ask("c", "two");
    const table = await until("kubectl tells", 40_000, async () => {
      const text = await kubectl.ok(["get", "functions"]);
      return /^fails .* 1 +1\s/m.test(text) && /KindMissing/.test(text) && /^greet +True/m.test(text) && text;
    });
    const rows = table.trimEnd().split("\n");
    expect(rows[0]).toMatch(/^NAME +READY +LAG +LAST EVENT +FAILURES +DEAD LETTERS +REASON *$/);
    expect(rows[1]).toMatch(/^early +False +0s +(<none>)? +0 +0 +KindMissing *$/);
    expect(rows[2]).toMatch(/^fails +True +0s +\d+m?\d*s +1 +1 *(<none>)? *$/);
    expect(rows[3]).toMatch(/^greet +True +0s +\d+m?\d*s +0 +0 *(<none>)? *$/);
    const why = await kubectl.ok([
      "get",
      "wfn",
      "early",
      "-o",
      "jsonpath={.status.conditions[?(@.type=='Watching')].message}",
    ]);
    expect(why).toContain(`${group}/v1`);
  });

  it("is waited for: `kubectl wait` ends when it is ready", async () => {
    await kubectl.ok(["wait", "--for=condition=Ready", "function/greet", "--timeout=30s"]);
  });

  it("takes its Function object along when it is removed", async () => {
    await rm(join(folder, "functions", "fails"), { recursive: true });
    await deploy("--yes");
    await eventually(
      () => admin.reply("GET", `/apis/watchfire.dev/v1alpha1/namespaces/${home}/functions/fails`),
      ({ status }) => status === 404,
    );
  });

  it("is of a set, beside that of another team, which neither takes its name nor removes it", async () => {
    const kubeconfig = await pipeline("team-a-pipeline");
    const asA = ["--set", "team-a", "--kubeconfig", kubeconfig, "--functions", join(folder, "functions-a")];
    const three = answers("three");
    await define("thanks", three.body, three.spec, "functions-a");
    await define("twice", "return;", {}, "functions-a");
    expect(await deploy(...asA)).toMatch(/^thanks +created .*\ntwice +created/);
    await ask("d", "three");
    await answered("d", "three");
    await ask("e", "two");
    await answered("e", "two");
    expect(await deploy()).toMatch(/^early +unchanged .*\ngreet +unchanged/);

    await define("greet", three.body, three.spec, "functions-a");
    await expect(deploy(...asA)).rejects.toThrow(/WF_DEPLOYED_TAKEN: the function greet is of the set default /);
    await rm(join(folder, "functions-a", "greet"), { recursive: true });
    await rm(join(folder, "functions-a", "twice"), { recursive: true });
    await expect(deploy(...asA)).rejects.toThrow(/WF_DEPLOYED_REMOVES: this would remove twice from the set team-a/);
    await until("kubectl tells the sets", 40_000, async () => {
      const text = await kubectl.ok(["get", "functions", "-o", "wide"]);
      return ["greet .* default", "thanks .* team-a", "twice .* team-a"].every((row) =>
        new RegExp(`^${row}\\b`, "m").test(text),
      );
    });
    expect(await deploy(...asA, "--yes", "-m", "without twice")).toMatch(/^thanks +unchanged .*\ntwice +removed/);
    const four = answers("four");
    await define("thanks", four.body, four.spec, "functions-a");
    expect(await deploy(...asA)).toMatch(/^thanks +changed/);
    const of = ["--set", "team-a", "--namespace", home, "--kubeconfig", kubeconfig];
    expect(await watchfire("rollback", ...of)).toMatch(/^thanks +changed/);
    await ask("g", "three");
    await answered("g", "three");
    const { current, revisions } = JSON.parse(await watchfire("revisions", ...of, "-o", "json"));
    const by = `system:serviceaccount:${home}:team-a-pipeline`;
    expect([current, revisions.map((each: Body) => [each.by, each.message])]).toEqual([
      4,
      ["rolled back to revision 2", "", "without twice", ""].map((message) => [by, message]),
    ]);
    const undeploy = ["undeploy", "--set", "team-a", "--namespace", home, "--kubeconfig", kubeconfig];
    expect(await watchfire(...undeploy, "--yes")).toMatch(/^thanks +removed/);
    await ask("f", "two");
    await answered("f", "two");
    const left = await kubectl.ok([
      "get",
      "configmap,serviceaccount,role",
      "-o",
      "name",
      "-l",
      "watchfire.dev/set=team-a",
    ]);
    expect(left.trim()).toBe("configmap/watchfire-functions.team-a");
  });

  it("is rendered for `kubectl apply`, and changed by a pipeline without rights on RBAC", async () => {
    const of = ["--set", "team-c", "--functions", join(folder, "functions-c"), "--namespace", home];
    const five = answers("five");
    await define("bow", five.body, five.spec, "functions-c");
    const text = await watchfire("deploy", ...of, "--output", "yaml");
    await kubectl.ok(["apply", "--server-side", "-f", "-"], text);
    await ask("h", "five");
    await answered("h", "five");
    const kubeconfig = await coder("team-c-coder");
    const six = answers("six");
    await define("bow", six.body, six.spec, "functions-c");
    const codeOnly = ["deploy", ...of, "--code-only", "--kubeconfig", kubeconfig];
    expect(await watchfire(...codeOnly)).toMatch(/^bow +changed/);
    await ask("i", "six");
    await answered("i", "six");
    const [permission] = six.spec.permissions;
    await define("bow", six.body, { permissions: [{ ...permission, verbs: ["patch", "delete"] }] }, "functions-c");
    await expect(watchfire(...codeOnly)).rejects.toThrow(
      `watchfire-bow lacks 1 of 4 rights; nothing was written; let somebody who may grant rights`,
    );
    await watchfire("undeploy", "--set", "team-c", "--namespace", home, "--yes", "--kubeconfig", join(folder, "admin"));
    const kept = ["get", "configmap,serviceaccount,role", "-o", "name", "-l", "watchfire.dev/set=team-c"];
    expect((await kubectl.ok(kept)).trim()).toBe("configmap/watchfire-functions.team-c");
  });

  it("is asked for in no way that is refused", async () => {
    const log = await readFile(runtime.logFile, "utf8");
    expect(
      log.split("\n").filter((line) => /forbidden|cannot (list|watch|get|create|patch|delete)/i.test(line)),
    ).toEqual([]);
  });

  it("has a definition that refuses a manifest, of a new function or of one that runs, and says what to do with it", async () => {
    const text = await readFile(join(folder, "functions", "greet", "function.yaml"), "utf8");
    for (const name of ["hand", "greet"]) {
      const { status, stderr } = await kubectl.run(["apply", "-f", "-"], text.replace("greet", name));
      expect([status, stderr]).toEqual([1, expect.stringContaining("bring a manifest with `watchfire deploy`")]);
      expect(stderr).not.toContain("unknown field");
    }
  });
});
