// The shipped functions with only the rules that `watchfire rbac` prints.
import { execFile, spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { z } from "zod";
import { Access } from "../../runtime/access/access.ts";
import { functionAccount } from "../../runtime/access/account.ts";
import { FunctionAccounts } from "../../runtime/access/function-accounts.ts";
import { OwnObjects } from "../../runtime/access/own-objects.ts";
import { systemClock } from "../../runtime/base/clock.ts";
import type { Status } from "../../runtime/host/status.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import type { FunctionManifest } from "../../runtime/manifest/function.ts";
import { builtInKinds } from "../../runtime/rbac/kinds.ts";
import { caller, everything, manifestOf } from "../access/api-server.ts";
import { admin, createNamespace, eventually, removeAtEnd, unique } from "../target/fixture.ts";
import { accessOf, kubeconfigOf } from "../target/kubeconfig.ts";
import { natsProgram } from "../tools/assets.ts";
import { NatsServer } from "../tools/nats-server.ts";
import { RuntimeProcess } from "../tools/watchfire-process.ts";

const shared = inject("shared");
const root = resolve(import.meta.dirname, "../..");
const account = "watchfire";
const functionNames = ["configmap-sync", "crash-notify", "hello", "myapp", "nightly-cleanup", "scale-guard"];

let home: string;
let folder: string;
let functions: string;
let adminConfig: string;
let runtimeConfig: string;
let runtime: RuntimeProcess;

/** Runs the command line. Returns its output and its status. */
async function watchfire(...args: string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const command = [join(root, "runtime/bin/watchfire.js"), ...args];
  const ran = promisify(execFile)(process.execPath, command, { maxBuffer: 1 << 24 });
  return ran.then(
    ({ stdout, stderr }) => ({ status: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ status: code, stdout, stderr }),
  );
}

/** Returns one line for each object. */
function apply(yaml: string): Promise<string[]> {
  const kubectl = spawn(inject("kubectl"), ["--kubeconfig", adminConfig, "apply", "-f", "-"], { stdio: "pipe" });
  let said = "";
  for (const stream of [kubectl.stdout, kubectl.stderr]) stream.on("data", (text) => (said += text));
  kubectl.stdin.end(yaml);
  return new Promise((resolve, reject) => {
    kubectl.on("close", (status) => (status === 0 ? resolve(said.trim().split("\n")) : reject(new Error(said))));
  });
}

const rbac = (...more: string[]) => watchfire("rbac", "--functions", functions, "--namespace", home, ...more);
const doctor = (...more: string[]) =>
  watchfire("doctor", "--functions", functions, "--namespace", home, "--kubeconfig", adminConfig, ...more);

/** Prepares a namespace, and the shipped functions for it. */
async function prepare(): Promise<void> {
  home = await createNamespace();
  folder = await mkdtemp(join(tmpdir(), "watchfire-rbac-"));
  functions = join(folder, "functions");
  await cp(join(root, "functions"), functions, { recursive: true });
  // The only namespace that a shipped function names is replaced by this test's.
  const hello = join(functions, "hello/function.yaml");
  await writeFile(hello, (await readFile(hello, "utf8")).replace("[demo]", `[${home}]`));
  adminConfig = join(folder, "admin.kubeconfig");
  await writeFile(adminConfig, kubeconfigOf(shared.access, home));
}

const removeFolder = () => rm(folder, { recursive: true, force: true });

describe("without a cluster", () => {
  beforeAll(prepare);
  afterAll(removeFolder);

  test("what is printed is YAML alone, the same each time, and without a wildcard", async () => {
    const [one, other] = await Promise.all([rbac(), rbac()]);
    expect(one).toEqual(other);
    expect(one.status).toBe(0);
    // They write ConfigMaps, or delete Pods, in all namespaces, including the runtime's.
    const warned = one.stderr
      .trim()
      .split("\n")
      .map((line) => line.replace(`${functions}/`, "").split(":"));
    const at = (file: string) => ["warning", ` WF_RBAC_OWN_OBJECTS ${file}`, expect.stringMatching(/^\d+$/)];
    expect(warned.map((parts) => parts.slice(0, 3))).toEqual([
      at("configmap-sync/function.yaml"),
      at("myapp/function.yaml"),
      at("nightly-cleanup/function.yaml"),
    ]);
    expect(one.stdout).toMatch(/^---\napiVersion: v1\nkind: ServiceAccount\n/);
    expect(one.stdout).not.toMatch(/['"]\*['"]/);
  });

  test("a kind that nothing describes, and a wildcard, refuse the whole by code, place and hint", async () => {
    const odd = join(folder, "odd");
    await cp(functions, odd, { recursive: true });
    await rm(join(odd, "myapp/crd.yaml"));
    const guard = join(odd, "scale-guard/function.yaml");
    await writeFile(guard, (await readFile(guard, "utf8")).replace("[deployments/scale]", '["*"]'));
    const { status, stdout, stderr } = await watchfire("rbac", "--functions", odd, "--namespace", home);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr.trim().split("\n")).toEqual([
      expect.stringMatching(
        /^WF_RBAC_UNKNOWN_KIND .*myapp\/function\.yaml spec\.triggers\[0\]\.watch: .*my\.domain\/v1 MyApp.*; put its CustomResourceDefinition/,
      ),
      expect.stringMatching(
        /^WF_RBAC_WILDCARD .*scale-guard\/function\.yaml:\d+:\d+ spec\.permissions\[0\]\.resources\[0\]: .*, got "\*"; /,
      ),
    ]);
  });
});

/** Writes of the runtime itself, other than the functions' tokens, by its options. */
const ownWrites = ["create leases", "update leases", "update secrets", "create functions", "patch functions/status"];

interface Case {
  readonly who: string;
  /** Options of both `watchfire rbac` and the runtime. */
  readonly flags: readonly string[];
  readonly writesOfItsOwn: readonly string[];
  /** Number of slots on NATS that its replicas share. */
  readonly slots?: number;
}

const cases: readonly Case[] = [
  { who: "a runtime", flags: [], writesOfItsOwn: [] },
  {
    who: "one of several, with all that it can be asked to do",
    flags: ["--leader-elect", "--store=kubernetes", "--deployed", "--function-status"],
    writesOfItsOwn: ownWrites,
  },
  {
    who: "a replica that shares the functions",
    flags: ["--store=nats", "--deployed"],
    writesOfItsOwn: [...ownWrites, "delete leases"],
    slots: 4,
  },
];

for (const { who, flags: given, writesOfItsOwn, slots } of cases)
  describe.skipIf(slots !== undefined && natsProgram === undefined)(`with the printed rules alone, ${who}`, () => {
    const flags = slots === undefined ? given : [...given, "--slots"];
    let nats: NatsServer | undefined;

    beforeAll(async () => {
      if (slots !== undefined) {
        nats = await NatsServer.make();
        await nats.start();
      }
      await prepare();
      for (const file of ["functions/myapp/crd.yaml", "deploy/chart/files/functions.watchfire.dev.yaml"]) {
        await apply(await readFile(join(root, file), "utf8"));
      }
      const before = await doctor(...flags);
      expect(before.status).toBe(1);
      expect(before.stdout).toContain(`function hello: ${home}/watchfire-hello: there is no such ServiceAccount`);
      expect(before.stdout).toContain("| kubectl --kubeconfig");

      const { stdout } = await rbac(...flags);
      const made = await apply(stdout);
      expect(made.filter((line) => !line.endsWith(" created"))).toEqual([]);
      for (const line of made) {
        const [path = ""] = line.split(" ");
        if (path.startsWith("clusterrole"))
          removeAtEnd(`/apis/rbac.authorization.k8s.io/v1/${path.replace(".rbac.authorization.k8s.io/", "s/")}`);
      }
      expect((await apply(stdout)).filter((line) => !line.endsWith(" unchanged"))).toEqual([]);

      const path = `/api/v1/namespaces/${home}/serviceaccounts/${account}/token`;
      const issued = await admin.post(path, { spec: { expirationSeconds: 3600 } });
      runtimeConfig = join(folder, "runtime.kubeconfig");
      const { url, ca } = shared.access;
      await writeFile(runtimeConfig, kubeconfigOf({ url, ca, token: issued.status.token }, home));
      const sharing = nats ? ["--nats", nats.url, "--slots", String(slots)] : [];
      runtime = new RuntimeProcess(folder, runtimeConfig, functions, ["--identity", "function", ...given, ...sharing]);
      await runtime.start();
    });
    afterAll(async () => {
      await runtime.kill();
      await nats?.remove();
      await removeFolder();
    });

    test("the doctor finds every account with all that it needs, and nothing more", async () => {
      const { status, stdout } = await doctor(...flags);
      expect(stdout.trim().split("\n")).toEqual(
        ["runtime", ...functionNames.map((name) => `function ${name}`)].map((who) =>
          expect.stringMatching(new RegExp(`^${who}: .*: has all that it needs \\(\\d+\\)$`)),
        ),
      );
      expect(status).toBe(0);
    });

    test("every shipped function does its work", async () => {
      const target = await createNamespace({ sync: home });
      await admin.post(`/api/v1/namespaces/${home}/configmaps`, {
        metadata: {
          name: "settings",
          labels: { "sync.watchfire.dev/enabled": "true" },
          annotations: { "sync.watchfire.dev/namespaces": `sync=${home}` },
        },
        data: { a: "1" },
      });
      const app = {
        apiVersion: "my.domain/v1",
        kind: "MyApp",
        metadata: { name: "web" },
        spec: { appName: "web", version: "1" },
      };
      await admin.post(`/apis/my.domain/v1/namespaces/${home}/myapps`, app);
      const labels = { app: unique("web") };
      const template = { metadata: { labels }, spec: { containers: [{ name: "web", image: "web" }] } };
      const deployments = `/apis/apps/v1/namespaces/${home}/deployments`;
      await admin.post(deployments, {
        metadata: { name: "web", annotations: { "scale-guard.watchfire.dev/range": "2-5" } },
        spec: { replicas: 1, selector: { matchLabels: labels }, template },
      });

      await eventually(
        () => admin.reply("GET", `/api/v1/namespaces/${target}/configmaps/settings`),
        ({ status }) => status === 200,
      );
      const myapp = `/apis/my.domain/v1/namespaces/${home}/myapps/web`;
      await eventually(
        () => admin.get(myapp),
        ({ status }) => status?.conditions?.length > 0,
      );
      await promisify(execFile)(inject("kubectl"), [
        "--kubeconfig",
        adminConfig,
        "scale",
        "myapps/web",
        "--replicas=3",
      ]);
      await eventually(
        () => admin.get(`/api/v1/namespaces/${home}/configmaps/web`),
        ({ data }) => data.replicas === "3",
      );
      await admin.delete(myapp);
      await admin.delete(`/api/v1/namespaces/${home}/configmaps/settings`);
      const copies = `/api/v1/namespaces/${target}/configmaps`;
      for (const path of [myapp, `/api/v1/namespaces/${home}/configmaps/web`, `${copies}/settings`]) {
        await eventually(
          () => admin.reply("GET", path),
          ({ status }) => status === 404,
        );
      }
      await eventually(
        () => admin.get(`${deployments}/web`),
        ({ spec }) => spec.replicas === 2,
      );
      const status = (await (await runtime.read("/status")).json()) as Status;
      expect(status.functions.map(({ name, ready, reason }) => ({ name, ready, reason }))).toEqual(
        functionNames.map((name) => ({ name, ready: true })),
      );
    });

    test("a call that the manifest does not declare is refused by us, and without our check by the API server", async () => {
      const { url, ca, token } = await accessOf(runtimeConfig);
      const transport = connectDirect({ server: url, ca, token });
      const parts = { transport, clock: systemClock, random: Math.random };
      const accounts = new FunctionAccounts({ ...parts, namespace: home, account });
      const access = (manifest: FunctionManifest) =>
        new Access({
          ...parts,
          accounts,
          own: new OwnObjects({ namespace: home, account }),
          discovery: new Discovery(transport, systemClock),
          functions: new Map([[manifest.name, manifest]]),
          log: pino({ level: "silent" }),
        });
      const steal = async (permissions: FunctionManifest["permissions"]) => {
        const one = access(manifestOf({ name: "hello", permissions }));
        const ref = { apiVersion: "v1", kind: "Secret", name: "any", namespace: home };
        const who = { ...caller, function: "hello" };
        const reply = await one.call(who, "kube.get", JSON.stringify({ ref }), new AbortController().signal);
        await one.close();
        return reply;
      };
      try {
        expect(await steal([])).toMatchObject({
          ok: false,
          error: { type: "ForbiddenError", details: { refusedBy: "runtime" } },
        });
        expect(await refusals()).toEqual([]);
        const unchecked = await steal([everything]);
        expect(unchecked).toMatchObject({
          ok: false,
          error: {
            type: "ForbiddenError",
            status: 403,
            message: expect.stringContaining(
              `User "system:serviceaccount:${home}:watchfire-hello" cannot get resource "secrets"`,
            ),
            details: { refusedBy: "apiserver" },
          },
        });
        // Last test of this file, because the log now contains its first refusal.
        if (shared.auditLog) expect(await refusals()).toHaveLength(1);
      } finally {
        await transport.close();
      }
    });

    test.runIf(shared.auditLog)(
      "the audit log names each function for what it wrote, and the runtime for no write of theirs",
      async () => {
        const entries = await audit();
        const writes = entries.filter(
          ({ verb, objectRef }) =>
            !["get", "list", "watch"].includes(verb) && !objectRef?.resource.startsWith("selfsubject"),
        );
        const by = (name: string) =>
          new Set(
            writes
              .filter(({ user }) => user.username === userOf(name))
              .map(
                ({ verb, objectRef: of }) => `${verb} ${of?.resource}${of?.subresource ? `/${of.subresource}` : ""}`,
              ),
          );
        // The runtime's own writes occur at any time, so they are left out.
        expect([...by(account)].filter((write) => !writesOfItsOwn.includes(write))).toEqual([
          "create serviceaccounts/token",
        ]);
        expect(by(functionAccount(account, "configmap-sync"))).toContain("create configmaps");
        expect(by(functionAccount(account, "myapp"))).toContain("patch myapps/status");
        expect(by(functionAccount(account, "scale-guard"))).toContain("patch deployments/scale");
        const tokens = entries
          .filter(({ objectRef }) => objectRef?.subresource === "token")
          .map(({ objectRef }) => objectRef?.name);
        expect(new Set(tokens)).toEqual(new Set(functionNames.map((name) => functionAccount(account, name))));
      },
    );
  });

test("the table of built-in kinds is what the API server says of them", async () => {
  for (const apiVersion of ["v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1"]) {
    const { resources } = await admin.get(apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`);
    const watchable = resources.filter(({ name, verbs }: Served) => verbs.includes("watch") && !name.includes("/"));
    expect(watchable.length).toBeGreaterThan(1);
    for (const { name, kind, namespaced } of watchable) {
      expect([kind, builtInKinds(apiVersion, kind)]).toEqual([kind, { plural: name, namespaced }]);
    }
  }
});

interface Served {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: string[];
}

const entrySchema = z.looseObject({
  user: z.looseObject({ username: z.string() }),
  verb: z.string(),
  requestURI: z.string(),
  objectRef: z
    .looseObject({ resource: z.string(), name: z.string().optional(), subresource: z.string().optional() })
    .optional(),
  responseStatus: z.looseObject({ code: z.number() }).optional(),
});

const userOf = (name: string) => `system:serviceaccount:${home}:${name}`;

/** Every request of this test's accounts. Empty on a cluster without an audit log. */
async function audit() {
  if (!shared.auditLog) return [];
  const lines = (await readFile(shared.auditLog, "utf8")).trim().split("\n");
  const entries = lines.map((line) => entrySchema.parse(JSON.parse(line)));
  return entries.filter(({ user }) => user.username.startsWith(userOf("")));
}

const refusals = async () => (await audit()).filter(({ responseStatus }) => responseStatus?.code === 403);
