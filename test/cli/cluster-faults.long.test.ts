// Errors of the commands that access a cluster: without permission, and with an output that is closed early.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { admin, cluster } from "../scenarios/cluster.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { writeFunction } from "../tools/installation.ts";
import { type Result, watchfire } from "./run.ts";

// Each test runs the command line as a process.
vi.setConfig({ testTimeout: 60_000 });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "watchfire-faults-"));
  const watch = { apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchNames: ["default"] } };
  await writeFunction(join(folder, "functions"), "greet", { watch });
  return () => rm(folder, { recursive: true, force: true });
});

async function kubeconfig(token: string): Promise<string[]> {
  const file = join(folder, `kubeconfig-${token.slice(-12)}`);
  await writeFile(file, kubeconfigOf({ url: cluster.url, ca: cluster.caCertificate, token }, "default"));
  return ["--functions", join(folder, "functions"), "--namespace", "default", "--kubeconfig", file];
}

test.each(["doctor", "deploy", "rbac"])(
  "%s says that its credentials are refused, without a stack",
  async (command) => {
    const { status, stdout, stderr }: Result = await watchfire([command, ...(await kubeconfig("not-a-token"))]);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^WF_KUBE_CREDENTIALS: [^\n]*\n$/);
  },
);

/** The arguments for a command that runs as an account without any rights. */
async function nosy(): Promise<string[]> {
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await admin.post(accounts, { metadata: { name: "nosy" } });
  onTestFinished(async () => void (await admin.delete(`${accounts}/nosy`)));
  const { token } = (await admin.post(`${accounts}/nosy/token`, { spec: {} })).status as { token: string };
  return kubeconfig(token);
}

test("doctor of somebody who may not ask says that it knows nothing, and gives no remedy", async () => {
  const { status, stdout } = await watchfire(["doctor", ...(await nosy())]);
  expect(status).toBe(1);
  expect(stdout).toContain("not known");
  expect(stdout).not.toContain("to grant what is missing");
  expect(stdout).toContain("subjectaccessreviews");
});

test("doctor that the runtime's own account asks says what the account lacks, whatever else it may not ask", async () => {
  const { status, stdout } = await watchfire(["doctor", ...(await nosy()), "--service-account", "nosy"]);
  expect(status).toBe(1);
  expect(stdout).toMatch(/^runtime: default\/nosy: lacks (\d+) of \1$/m);
  expect(stdout).toContain("missing: get namespaces in all namespaces");
  expect(stdout).toContain("function greet: default/nosy-greet: not known");
});

test("doctor's remedy is for a runtime that is started as it was told", async () => {
  const started = ["--service-account", "no-such", "--store", "nats", "--slots", "--deployed", "--function-status"];
  const { status, stdout } = await watchfire(["doctor", ...(await kubeconfig(cluster.adminToken)), ...started]);
  expect(status).toBe(1);
  const remedy = /watchfire rbac .*(?= \| )/.exec(stdout)?.[0].split(" ");
  expect(remedy).toEqual(expect.arrayContaining(started));
});

test("doctor names the namespaces that are not there, and still shows what else is missing", async () => {
  const namespaces = ["nowhere-yet", "default"];
  const spec = { permissions: [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"], namespaces }] };
  const watch = { apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchNames: ["default"] } };
  await writeFunction(join(folder, "lost"), "lost", { watch, spec });
  const args = ["doctor", ...(await kubeconfig(cluster.adminToken)), "--functions", join(folder, "lost")];
  const { status, stdout, stderr } = await watchfire(args);
  expect(status).toBe(1);
  expect(stdout).toContain("function lost: default/watchfire-lost: there is no such ServiceAccount");
  expect(stdout).toContain('missing: get secrets in namespace "default"');
  expect(stdout).not.toContain("nowhere-yet");
  expect(stderr).toMatch(/^WF_RBAC_NO_NAMESPACE: .*nowhere-yet \(for lost\).*`kubectl create namespace nowhere-yet`/);
});

test("doctor says what is wrong with a function's manifest, and looks at the others", async () => {
  const watch = { apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchNames: ["default"] } };
  const some = join(folder, "some");
  const rule = { apiGroups: ["*"], resources: ["pods"], verbs: ["get"], namespaces: ["default"] };
  await writeFunction(some, "good", { watch });
  await writeFunction(some, "open", { watch, spec: { permissions: [rule] } });
  await writeFunction(some, "bad", { watch: { ...watch, kynd: "ConfigMap" } });
  const args = ["doctor", ...(await kubeconfig(cluster.adminToken)), "--functions", some];
  const { status, stdout, stderr } = await watchfire(args);
  expect(status).toBe(1);
  const codes = [...stderr.matchAll(/^(WF_\w+) .*\b(bad|open)\/function/gm)].map(([, code, name]) => `${name} ${code}`);
  expect(codes).toEqual(["bad WF_MANIFEST_UNKNOWN_FIELD", "open WF_RBAC_WILDCARD"]);
  const rows = [...stdout.matchAll(/^(?:runtime|function \w+)(?=:)/gm)].map(([row]) => row);
  expect(rows).toEqual(["runtime", "function good"]);
});

test("a reader that goes before the end leaves a command its work and its status", async () => {
  const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");
  const { status, stderr } = await new Promise<Omit<Result, "stdout">>((done) => {
    const script = `{ "$0" "$@"; echo "status $?" >&2; } | true`;
    const args = ["-c", script, process.execPath, bin, "doctor"];
    void kubeconfig(cluster.adminToken).then((more) =>
      execFile("sh", [...args, ...more], { env: { PATH: process.env.PATH } }, (error, _, text) => {
        done({ status: typeof error?.code === "number" ? error.code : 0, stderr: text });
      }),
    );
  });
  expect([status, stderr]).toEqual([0, "status 1\n"]);
});
