// Functions that are part of an image, from `helm install` to their effects and their limits.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type Body, Client } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { functionFolders } from "./images.ts";
import { say } from "./ledger.ts";
import { admin, auditLog, ensureNamespace, kubectl, Release, watchfire } from "./release.ts";

const patienceMs = 60_000;
const namespaces = ["demo", "audit", "audit-records", "gluttony", "trespass"];
const path = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;
const myapp = join(import.meta.dirname, "../../functions/myapp");

describe("a release whose functions are in its image", () => {
  let release: Release;

  beforeAll(async () => {
    release = await Release.into("first-run");
    for (const name of namespaces) await ensureNamespace(name);
    await kubectl(["apply", "-f", join(myapp, "crd.yaml")]);
    for (const folder of functionFolders) await release.grant(folder);
    await admin.post(path("audit"), { metadata: { name: "before" }, data: {} });
  });
  afterAll(() => release?.uninstall());

  test("is ready in a namespace that enforces the restricted standard, and handles an event soon after", async () => {
    const began = performance.now();
    // All rights come from `watchfire rbac`, so that a missing one would show.
    const granted = ["rbac.create=false", "serviceAccount.create=false", "serviceAccount.name=watchfire"];
    const installed = release.helm("install", "functions", "executor.resources.limits.memory=512Mi", ...granted);
    const handled = until("the first event is handled", 150_000, async () => {
      const records = await admin.get(path("audit-records"));
      return records.items.some(({ data }: Body) => data?.name === "before") && performance.now() - began;
    });
    await installed;
    say(`helm install to the first handled event: ${((await handled) / 1000).toFixed(1)} s`);
    const { functions } = await release.status();
    expect(functions.filter(({ ready }) => !ready)).toEqual([]);
  });

  test("reconciles a custom resource from inside the pod", async () => {
    await kubectl(["apply", "-f", join(myapp, "myapp.yaml")]);
    const app = await until("the MyApp is ready", patienceMs, async () => {
      const found = await admin.get("/apis/my.domain/v1/namespaces/default/myapps/my-sample");
      return found.status?.conditions?.[0]?.status === "True" && found;
    });
    expect(app.status.conditions).toMatchObject([{ type: "Ready", reason: "ConfigMapKept" }]);
    const { spec } = parse(readFileSync(join(myapp, "myapp.yaml"), "utf8"));
    const kept = await admin.get(`${path("default")}/my-sample`);
    expect(kept.data).toMatchObject({ appName: spec.appName, version: spec.version });
  });

  test("each function acts as an account of its own, and none was refused what it was granted", async () => {
    // The API server may be writing the last line.
    const lines = readFileSync(auditLog, "utf8").split("\n").slice(0, -1);
    // A call without valid authentication has no user name. A pod makes such calls after its uninstall has removed its account.
    const own = lines
      .map((line) => JSON.parse(line))
      .filter(({ user }) => user.username?.startsWith(`system:serviceaccount:${release.namespace}:`));
    const written = own.find(({ objectRef, verb }) => objectRef?.namespace === "audit-records" && verb === "create");
    expect(written?.user.username).toBe(`system:serviceaccount:${release.namespace}:watchfire-recorder`);
    const forbidden = own.filter(
      ({ stage, responseStatus }) => stage === "ResponseComplete" && responseStatus?.code === 403,
    );
    expect(forbidden.map(({ user, verb, requestURI }) => `${user.username} ${verb} ${requestURI}`)).toEqual([]);
  });

  test("an operator pauses through a forwarded port with their own login, or a ServiceAccount's, without pods/exec", async () => {
    const { namespace } = release;
    await kubectl(["apply", "-f", "-"], await watchfire("rbac", "--role", "operator", "--namespace", namespace));
    await kubectl(["-n", namespace, "create", "serviceaccount", "oncall"]);
    const subject = `--serviceaccount=${namespace}:oncall`;
    await kubectl(["-n", namespace, "create", "rolebinding", "oncall", "--role=watchfire-operator", subject]);
    const token = (await kubectl(["-n", namespace, "create", "token", "oncall"])).trim();
    const { url, ca } = admin.access;
    const own = join(folderOf({}), "kubeconfig");
    writeFileSync(own, kubeconfigOf({ url, ca, token }));
    const ask = (verb: string, ...more: string[]) =>
      watchfire(verb, "recorder", "-n", namespace, "--reason", "a drill", ...more);
    expect(await ask("pause", "--kubeconfig", own)).toContain("recorder is paused");
    // The administrator's kubeconfig has a client certificate.
    expect(await ask("resume", "--as-account", "oncall")).toContain("recorder goes on");
    const lines = (await kubectl(["-n", namespace, "logs", "watchfire-0", "-c", "watchfire"])).split("\n");
    const audit = lines.filter((line) => line.includes('"msg":"audit"')).map((line) => JSON.parse(line));
    const by = {
      who: `system:serviceaccount:${namespace}:oncall`,
      function: "recorder",
      reason: "a drill",
      result: "done",
    };
    expect(audit).toMatchObject([
      { ...by, verb: "pause" },
      { ...by, verb: "resume" },
    ]);
    const exec = ["--kubeconfig", own, "-n", namespace, "exec", "watchfire-0", "-c", "watchfire", "--", "node", "-v"];
    await expect(kubectl(exec)).rejects.toThrow(/forbidden/);
  });

  test("a call that the manifest does not declare never leaves the runtime", async () => {
    await admin.post("/api/v1/namespaces/trespass/secrets", { metadata: { name: "treasure" }, data: {} });
    await admin.post(path("trespass"), { metadata: { name: "keep-out" }, data: {} });
    const refused = await until("the trespasser notes its refusal", patienceMs, async () => {
      const { metadata } = await admin.get(`${path("trespass")}/keep-out`);
      return metadata.annotations?.refused;
    });
    expect(refused).toContain("secrets");
    expect(readFileSync(auditLog, "utf8")).not.toMatch(/serviceaccount:first-run:.*namespaces\/trespass\/secrets/);
  });

  test("and the API server would refuse it as well: the function's own account has no right to it", async () => {
    const account = `${release.path}/serviceaccounts/watchfire-trespasser`;
    const { status } = await admin.post(`${account}/token`, { spec: {} });
    const asFunction = new Client({ ...admin.access, token: status.token });
    const secret = await asFunction.reply("GET", "/api/v1/namespaces/trespass/secrets/treasure");
    const granted = await asFunction.reply("PATCH", `${path("trespass")}/keep-out`, {
      type: "application/merge-patch+json",
      body: { metadata: { labels: { granted: "yes" } } },
    });
    await asFunction.close();
    expect([secret.status, granted.status]).toEqual([403, 200]);
  });

  test("the executor has no token, and its files cannot be written", async () => {
    const node = ["/usr/local/bin/node", "--input-type=module", "--eval"];
    const inExecutor = (code: string) =>
      kubectl(["-n", release.namespace, "exec", "watchfire-0", "-c", "executor", "--", ...node, code]);
    const look = `import { existsSync, writeFileSync } from "node:fs";
      const attempt = (file) => { try { writeFileSync(file, ""); return "written"; } catch (error) { return error.code; } };
      console.log(JSON.stringify([existsSync("/var/run/secrets/kubernetes.io/serviceaccount/token"), attempt("/app/x"), attempt("/tmp/x"), process.getuid()]));`;
    expect(JSON.parse(await inExecutor(look))).toEqual([false, "EROFS", "EROFS", 65532]);
  });

  test("a handler that drives the executor's container into its memory limit has that container alone restarted", async () => {
    await admin.post(path("gluttony"), { metadata: { name: "feast" }, data: {} });
    const executor = await until("the executor is restarted", 120_000, async () => {
      const container = await release.container("executor");
      return container.restartCount > 0 && container.state.running && container;
    });
    expect(executor.lastState.terminated.reason).toBe("OOMKilled");
    expect((await release.container("watchfire")).restartCount).toBe(0);
    await until("the glutton's event is a dead letter", 120_000, async () => {
      const glutton = (await release.status()).functions.find(({ name }) => name === "glutton");
      return glutton?.deadLetters === 1;
    });
    await admin.post(path("audit"), { metadata: { name: "after" }, data: {} });
    await until("the others go on", patienceMs, async () => {
      const records = await admin.get(path("audit-records"));
      return records.items.some(({ data }: Body) => data?.name === "after");
    });
    expect((await release.container("watchfire")).restartCount).toBe(0);
  });
});
