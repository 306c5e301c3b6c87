import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Body } from "../target/client.ts";
import { admin, createNamespace, eventually, Kubectl, removeAtEnd } from "../target/fixture.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { until } from "../tools/until.ts";
import { RuntimeProcess } from "../tools/watchfire-process.ts";

const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");
const definitions = ["functions", "functionsets"].map((plural) => `${plural}.watchfire.dev`);
const definitionFile = (name: string) => join(import.meta.dirname, `../../deploy/chart/files/${name}.yaml`);
const rbac = "/apis/rbac.authorization.k8s.io/v1";

const { access } = inject("shared");

/** Runs a watchfire command. Returns its standard output. */
const watchfire = async (...args: string[]) => (await promisify(execFile)(process.execPath, [bin, ...args])).stdout;

interface Team {
  readonly namespace: string;
  /** The kubeconfig of an account with every right in the namespace, and no other. */
  readonly kubeconfig: string;
}

describe("a runtime that two teams share", () => {
  let home: string;
  /** A namespace of neither team, whose ConfigMaps the runtime may watch. */
  let outside: string;
  let folder: string;
  let a: Team;
  let b: Team;
  let runtime: RuntimeProcess;

  async function define(team: string, name: string, body: string, watched: string, spec: object = {}): Promise<void> {
    const place = join(folder, team, name);
    await mkdir(place, { recursive: true });
    const watch = { apiVersion: "v1", kind: "ConfigMap", labelSelector: { matchLabels: { ask: "yes" } } };
    const manifest = {
      apiVersion: "watchfire.dev/v1alpha1",
      kind: "Function",
      metadata: { name },
      spec: {
        handler: "./handler.ts",
        triggers: [{ watch: { ...watch, namespaceSelector: { matchNames: [watched] } } }],
        ...spec,
      },
    };
    await writeFile(join(place, "function.yaml"), JSON.stringify(manifest));
    await writeFile(join(place, "handler.ts"), `export default async (event, ctx) => { ${body} };`);
  }

  /** A handler that writes `word` into the ConfigMap that it receives, as an answer. */
  const answers = (word: string, namespace: string) => ({
    body: `const { name, namespace } = event.object.metadata;
      if (event.object.data.ask === "${word}" && event.object.data.answer !== "${word}")
        await ctx.kube.patch({ apiVersion: "v1", kind: "ConfigMap", name, namespace }, { data: { answer: "${word}" } });`,
    spec: { permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["patch"], namespaces: [namespace] }] },
  });

  let asked = 0;
  const ask = (namespace: string, name: string, word: string) =>
    admin.apply(
      `/api/v1/namespaces/${namespace}/configmaps/${name}`,
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name, labels: { ask: "yes" } },
        data: { ask: word, at: String(asked++) },
      },
      "person",
    );

  /** Asks until the team's present code, which may still be on its way, answers. */
  const isAnswered = (namespace: string, name: string, word: string) =>
    eventually(
      async () => {
        await ask(namespace, name, word);
        return admin.get(`/api/v1/namespaces/${namespace}/configmaps/${name}`);
      },
      (configMap: Body) => configMap.data.answer === word,
    );

  const command = (name: string, by: Team, ...more: string[]) =>
    watchfire(name, "--set", "main", "--namespace", by.namespace, "--kubeconfig", by.kubeconfig, ...more);

  const deploy = (by: Team, team: string, ...more: string[]) =>
    command("deploy", by, "--functions", join(folder, team), ...more);

  async function bind(namespace: string, name: string, rules: object[], subject: object): Promise<void> {
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name };
    await admin.post(`${rbac}/namespaces/${namespace}/roles`, { metadata: { name }, rules });
    await admin.post(`${rbac}/namespaces/${namespace}/rolebindings`, {
      metadata: { name },
      roleRef,
      subjects: [subject],
    });
  }

  const tokenOf = async (namespace: string, account: string): Promise<string> => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
    return ((await admin.post(path, { spec: {} })) as Body).status.token;
  };

  async function team(name: string): Promise<Team> {
    const namespace = await createNamespace();
    await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: "pipeline" } });
    const everything = { apiGroups: ["*"], resources: ["*"], verbs: ["*"] };
    await bind(namespace, "everything", [everything], { kind: "ServiceAccount", name: "pipeline", namespace });
    // As the chart does for `sets.namespaces`.
    const reads = { apiGroups: [""], resources: ["configmaps"], verbs: ["list", "watch"] };
    const shows = [
      { apiGroups: ["watchfire.dev"], resources: ["functions"], verbs: ["create", "delete", "list", "patch"] },
      { apiGroups: ["watchfire.dev"], resources: ["functions/status", "functionsets/status"], verbs: ["patch"] },
      {
        apiGroups: ["watchfire.dev"],
        resources: ["functionsets"],
        verbs: ["create", "delete", "list", "patch", "watch"],
      },
    ];
    await bind(namespace, "watchfire-sets", [reads, ...shows], {
      kind: "ServiceAccount",
      name: "watchfire",
      namespace: home,
    });
    const named = { metadata: { name: "watchfire-runtime" }, data: { namespace: home } };
    await admin.post(`/api/v1/namespaces/${namespace}/configmaps`, named);
    const kubeconfig = join(folder, `${name}.kubeconfig`);
    const own = { url: access.url, ca: access.ca, token: await tokenOf(namespace, "pipeline") };
    await writeFile(kubeconfig, kubeconfigOf(own, namespace));
    return { namespace, kubeconfig };
  }

  /** Returns what `kubectl get functions` shows a team of a function: whether it is ready, and why. */
  const shownTo = async (by: Team, name: string): Promise<string> => {
    const path = `/apis/watchfire.dev/v1alpha1/namespaces/${by.namespace}/functions/${name}`;
    const { status, body } = await admin.reply("GET", path);
    const { conditions = [], reason = "", message = "" } = (body as Body)?.status ?? {};
    const ready = conditions.find(({ type }: Body) => type === "Ready")?.status;
    return status === 200 ? `${ready} ${reason} ${message}` : String(status);
  };
  const isShown = (by: Team, name: string, words: string) =>
    until(`the team is shown ${words}`, 30_000, async () => (await shownTo(by, name)).includes(words));

  const reported = async (name: string): Promise<Body | undefined> =>
    ((await (await runtime.read("/status")).json()) as Body).functions.find((each: Body) => each.name === name);

  beforeAll(async () => {
    home = await createNamespace();
    outside = await createNamespace();
    folder = await mkdtemp(join(tmpdir(), "watchfire-shared-"));
    await mkdir(join(folder, "none"));
    for (const each of definitions) {
      await new Kubectl(home).ok(["apply", "-f", definitionFile(each)]);
      removeAtEnd(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${each}`);
    }
    const flags = ["--namespace", home, "--deployed", "--function-status"];
    const rights = await watchfire("rbac", "--functions", join(folder, "none"), ...flags);
    await new Kubectl(home).ok(["apply", "-f", "-"], rights);
    a = await team("a");
    b = await team("b");
    // Functions of the platform may watch everything; the teams' may not.
    const name = `watchfire-sees-${home}`;
    const sees = { apiGroups: [""], resources: ["configmaps"], verbs: ["list", "watch"] };
    await admin.post(`${rbac}/clusterroles`, { metadata: { name }, rules: [sees] });
    await admin.post(`${rbac}/clusterrolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name: "watchfire", namespace: home }],
    });
    for (const kind of ["clusterroles", "clusterrolebindings"]) removeAtEnd(`${rbac}/${kind}/${name}`);
    const own = { url: access.url, ca: access.ca, token: await tokenOf(home, "watchfire") };
    await writeFile(join(folder, "runtime"), kubeconfigOf(own, home));
    const shares = [a, b].flatMap(({ namespace }) => ["--sets-namespace", namespace]);
    const more = ["--deployed", "--function-status", "--identity", "function", ...shares, "--sets-functions", "3"];
    runtime = new RuntimeProcess(folder, join(folder, "runtime"), join(folder, "none"), more);
    await runtime.start();
  });
  afterAll(async () => {
    await runtime?.kill();
    await rm(folder, { recursive: true, force: true });
  });

  it("runs a function of each team by the same name, and each acts in its team's namespace by its team's account", async () => {
    for (const [team, { namespace }] of [
      ["a", a],
      ["b", b],
    ] as const) {
      const { body, spec } = answers(`from ${team}`, namespace);
      await define(team, "greet", body, namespace, spec);
    }
    expect(await deploy(a, "a")).toMatch(/^greet +created/);
    expect(await deploy(b, "b")).toMatch(/^greet +created/);
    const answer = await isAnswered(a.namespace, "one", "from a");
    await isAnswered(b.namespace, "one", "from b");
    const managers = (answer.metadata as unknown as Body).managedFields.map(({ manager }: Body) => manager);
    expect(managers).toContain(`watchfire:greet.${a.namespace}`);
    expect((await reported(`greet.${b.namespace}`))?.ready).toBe(true);
    for (const by of [a, b]) await isShown(by, "greet", "True");
  });

  it("goes back to a team's earlier revision, and leaves the other team's alone", async () => {
    const { body, spec } = answers("from a again", a.namespace);
    await define("a", "greet", body, a.namespace, spec);
    expect(await deploy(a, "a")).toMatch(/^greet +changed/);
    await isAnswered(a.namespace, "two", "from a again");
    expect(await command("rollback", a)).toMatch(/^greet +changed/);
    await isAnswered(a.namespace, "three", "from a");
    const { revisions } = JSON.parse(await command("revisions", b, "-o", "json"));
    expect(revisions).toHaveLength(1);
  });

  it("refuses a team that deploys, rolls back or undeploys in the other's namespace", async () => {
    const intruder = { namespace: a.namespace, kubeconfig: b.kubeconfig };
    await expect(deploy(intruder, "b")).rejects.toThrow("WF_DEPLOYED_REFUSED");
    await expect(command("rollback", intruder)).rejects.toThrow(/is not allowed|cannot get|WF_DEPLOYED_REFUSED/);
    await expect(command("undeploy", intruder, "--yes")).rejects.toThrow("WF_DEPLOYED_REFUSED");
    await isAnswered(a.namespace, "four", "from a");
  });

  /** Runs kubectl with a team's rights, in a namespace. */
  const kubectl = (by: Team, namespace: string, ...args: string[]) =>
    new Kubectl(namespace).run([...args, "-n", namespace, "--kubeconfig", by.kubeconfig]);

  it("shows each team its set, and the revision of each function", async () => {
    const columns =
      /^NAME +READY +FUNCTIONS +REVISION +BY +AGE +REASON\s+main +True +1\/1 +3 +system:serviceaccount:\S+:pipeline +\S+\s*$/;
    await until("the set is shown", 60_000, async () =>
      columns.test((await kubectl(a, a.namespace, "get", "fset")).stdout),
    );
    const row = /SET +REVISION +BY +MESSAGE\s+greet +True .* main +3 +system:serviceaccount:\S+:pipeline/;
    await until("the function's revision is shown", 60_000, async () =>
      row.test((await kubectl(a, a.namespace, "get", "functions", "-o", "wide")).stdout),
    );
  });

  it("pauses a set by its object, also over a restart, as the team's own rights say, and resumes it", async () => {
    const lever = (paused: boolean) => [
      "patch",
      "fset",
      "main",
      "--type=merge",
      "-p",
      JSON.stringify({ spec: { paused } }),
    ];
    const refused = await kubectl(b, a.namespace, ...lever(true));
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("Forbidden")]);
    expect((await kubectl(a, a.namespace, ...lever(true))).stdout).toContain("patched");
    const isPaused = () =>
      until("the set is paused", 60_000, async () => (await reported(`greet.${a.namespace}`))?.paused === "set");
    await isPaused();
    await ask(a.namespace, "held", "from a");
    await isAnswered(b.namespace, "held", "from b");
    await runtime.kill();
    await runtime.start();
    await isPaused();
    await isAnswered(b.namespace, "held-too", "from b");
    const { data } = (await admin.get(`/api/v1/namespaces/${a.namespace}/configmaps/held`)) as Body;
    expect(data.answer).toBeUndefined();
    await until("the object says so", 60_000, async () =>
      /main +False +0\/1 .* Paused/.test((await kubectl(a, a.namespace, "get", "fset", "main")).stdout),
    );
    expect((await kubectl(a, a.namespace, ...lever(false))).status).toBe(0);
    await isAnswered(a.namespace, "held", "from a");
  });

  describe("and a function whose account may not see what its trigger names", () => {
    const seen = (name: string) => admin.reply("GET", `/api/v1/namespaces/${b.namespace}/configmaps/seen-${name}`);
    const sees = async (name: string) => {
      await eventually(
        () => seen(name),
        ({ status }) => status === 200,
      );
    };
    const permit = (verbs: string[]) =>
      admin.apply(
        `${rbac}/namespaces/${outside}/roles/spy`,
        {
          apiVersion: "rbac.authorization.k8s.io/v1",
          kind: "Role",
          metadata: { name: "spy" },
          rules: [
            { apiGroups: [""], resources: ["configmaps"], verbs },
            { apiGroups: [""], resources: ["events"], verbs: ["create", "patch"] },
          ],
        },
        "person",
      );
    const isForbidden = () =>
      until("it is forbidden", 45_000, async () => {
        const report = await reported(`spy.${b.namespace}`);
        return (
          report?.ready === false && report.reason === "Forbidden" && report.message.includes("WF_DEPLOYED_FORBIDDEN")
        );
      });
    const isSubscribed = async () => {
      const { sources } = (await (await runtime.read("/status")).json()) as Body;
      return sources.some((source: Body) => source.kind === "ConfigMap" && source.namespace === outside);
    };

    beforeAll(async () => {
      await define(
        "b",
        "spy",
        `const { name } = event.object.metadata;
        await ctx.kube.apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "seen-" + name, namespace: "${b.namespace}" } });`,
        outside,
        {
          permissions: [
            {
              apiGroups: [""],
              resources: ["configmaps"],
              verbs: ["create", "get", "patch"],
              namespaces: [b.namespace],
            },
          ],
        },
      );
    });

    it("is not deployed by the team, which may not grant that", async () => {
      await expect(deploy(b, "b")).rejects.toThrow("WF_DEPLOYED_REFUSED");
    });

    it("sees nothing if the team writes its objects by hand, although the runtime may watch that namespace", async () => {
      const text = await deploy(b, "b", "--output", "yaml");
      const kubectl = new Kubectl(b.namespace);
      const own = text.split("---\n").filter((object) => !object.includes(`namespace: ${outside}`));
      await kubectl.ok(["apply", "--server-side", "--force-conflicts", "-f", "-"], own.join("---\n"));
      await ask(outside, "before", "anything");
      await isForbidden();
      expect(await isSubscribed()).toBe(false);
      expect((await seen("before")).status).toBe(404);
      await isShown(b, "spy", `may not list configmaps in namespace "${outside}"`);
      const explained = await watchfire(
        ...["explain", `spy.${b.namespace}`, `${outside}/before`, "--data", join(folder, "data")],
      );
      expect(explained).toContain(`function spy.${b.namespace} is not ready, Forbidden: WF_DEPLOYED_FORBIDDEN`);
    });

    it("sees what is there once its account may list and watch it", async () => {
      const subject = { kind: "ServiceAccount", name: "watchfire-spy", namespace: b.namespace };
      await permit(["list"]);
      await admin.post(`${rbac}/namespaces/${outside}/rolebindings`, {
        metadata: { name: "spy" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "spy" },
        subjects: [subject],
      });
      expect(await isSubscribed()).toBe(false);
      await permit(["list", "watch"]);
      await sees("before");
    });

    it("is unsubscribed when the right is revoked, sees nothing meanwhile, and misses no net change after the next grant", async () => {
      await permit(["get"]);
      await isForbidden();
      expect(await isSubscribed()).toBe(false);
      await ask(outside, "meanwhile", "anything");
      await isAnswered(b.namespace, "five", "from b");
      expect((await seen("meanwhile")).status).toBe(404);
      await permit(["list", "watch"]);
      await sees("meanwhile");
    });
  });

  it("runs no more functions of a namespace than it is allowed, and keeps those that ran", async () => {
    for (const name of ["more", "most"]) await define("a", name, "return;", a.namespace);
    await deploy(a, "a");
    await eventually(
      () => reported(`most.${a.namespace}`),
      (report) => report?.ready === true,
    );
    await define("a", "beyond", "return;", a.namespace);
    const { body, spec } = answers("beyond", a.namespace);
    await define("a", "greet", body, a.namespace, spec);
    await deploy(a, "a");
    const said = await until("the status names the limit", 30_000, async () => {
      const { deployment } = (await (await runtime.read("/status")).json()) as Body;
      return deployment?.message.includes("WF_DEPLOYED_LIMIT") && deployment.message;
    });
    expect(said).toContain(`the set main has 4 functions, and namespace ${a.namespace} has room for 3`);
    await isShown(a, "beyond", "False DeploymentDamaged WF_DEPLOYED_LIMIT");
    await isShown(a, "greet", "True ChangeRefused the change is refused, the old version runs on: WF_DEPLOYED_LIMIT");
    await isAnswered(a.namespace, "six", "from a again");
    await isAnswered(b.namespace, "six", "from b");
  });

  it("removes one team's functions when that team undeploys them, and no other's", async () => {
    await command("undeploy", a, "--yes");
    await until("the function is gone", 30_000, async () => {
      const report = await reported(`greet.${a.namespace}`);
      return report === undefined || report.reason === "Suspended";
    });
    await isAnswered(b.namespace, "seven", "from b");
  });
});
