// The file for somebody who helps: what is in it, and what never is.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { admin, cluster } from "../scenarios/cluster.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";
import { define, Session } from "./session.ts";

// Each test runs the command line as a process.
vi.setConfig({ testTimeout: 120_000 });

const namespace = "supported";

/** Texts that must not be in the file, by where they come from. */
const planted = {
  secretInEnv: "planted-secret-in-env",
  literalInEnv: "planted-literal-in-env",
  secretRead: "planted-secret-that-is-read",
  body: "planted-in-an-object",
  code: "planted-in-the-code",
  variable: "planted-variable-of-the-process",
  proxyPassword: "planted-password-of-the-proxy",
  userMetric: "planted-label-of-a-metric",
};

const handler = `
const inCode = "${planted.code}";
export default async (event, ctx) => {
  const read = await ctx.kube.get({ apiVersion: "v1", kind: "Secret", name: "read", namespace: "${namespace}" });
  const said = [ctx.env.FROM_SECRET, ctx.env.LITERAL, atob(read.data.key), event.object.data.key, inCode].join(" ");
  ctx.log.warn("it says " + said);
  ctx.metrics.increment("seen", 1, { label: "${planted.userMetric}" });
  throw new Error("it failed with " + said);
};`;

const manifest = `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: leaky }
spec:
  handler: ./handler.ts
  triggers:
    - { watch: { apiVersion: v1, kind: ConfigMap, namespaceSelector: { matchNames: [${namespace}] }, fieldSelector: metadata.name=object } }
  permissions:
    - { apiGroups: [""], resources: [secrets], verbs: [get], namespaces: [${namespace}] }
  delivery: { retry: { maxAttempts: 1 } }
  env:
    - { name: FROM_SECRET, valueFrom: { secretKeyRef: { name: env, key: key } } }
    - { name: LITERAL, value: ${planted.literalInEnv} }
`;

async function supported(): Promise<{ data: string; report: string; session: Session }> {
  const folder = folderOf({});
  const kubeconfig = join(folder, "kubeconfig");
  const { url, caCertificate: ca, adminToken: token } = cluster;
  writeFileSync(kubeconfig, kubeconfigOf({ url, ca, token }, namespace));
  await admin.post("/api/v1/namespaces", { metadata: { name: namespace } });
  const create = (plural: string, name: string, fields: object) =>
    admin.post(`/api/v1/namespaces/${namespace}/${plural}`, { metadata: { name }, ...fields });
  await create("secrets", "env", { stringData: { key: planted.secretInEnv } });
  await create("secrets", "read", { stringData: { key: planted.secretRead } });
  await create("configmaps", "object", { data: { key: planted.body } });
  const [functions, data, report] = ["functions", "data", "support.json"].map((name) => join(folder, name));
  define(functions ?? "", "leaky", handler, manifest);
  define(functions ?? "", "broken", "export default () => {", undefined);
  const env = {
    PATH: process.env.PATH,
    DATABASE_PASSWORD: planted.variable,
    HTTPS_PROXY: `http://user:${planted.proxyPassword}@127.0.0.1:1`,
    NO_PROXY: "127.0.0.1",
  };
  const options = ["--functions", functions ?? "", "--data", data ?? "", "--kubeconfig", kubeconfig];
  const session = new Session(["start", ...options], env);
  return { data: data ?? "", report: report ?? "", session };
}

test("a runtime's file has its status, metrics, settings, warnings and manifests, and no secret, code or body", async () => {
  const { data, report, session } = await supported();
  await session.says(/event given up/);
  const { status, stdout, stderr } = await watchfire(["support", "--data", data, "--to", report]);
  expect([status, stdout, stderr]).toEqual([0, `${report}\n`, ""]);
  expect(statSync(report).mode & 0o777).toBe(0o600);
  const text = readFileSync(report, "utf8");
  for (const [from, secret] of Object.entries(planted)) {
    expect(text.includes(secret), from).toBe(false);
    expect(text.includes(Buffer.from(secret).toString("base64").replace(/=+$/, "")), from).toBe(false);
  }
  const token = readFileSync(join(data, "token"), "utf8").trim();
  expect(text.includes(token)).toBe(false);
  const { runtime, command } = JSON.parse(text);
  expect(command.node).toMatch(/^\d+\./);
  expect(runtime.versions.watchfire).toBe(command.watchfire);
  expect(runtime.options).toMatchObject({ namespace, store: "sqlite", identity: "runtime" });
  expect(runtime.status.functions.map(({ name }: { name: string }) => name).sort()).toEqual(["broken", "leaky"]);
  expect(runtime.metrics.join("\n")).toMatch(
    /^watchfire_events_total\{.*function="leaky".*outcome="dead_letter".*\} 1$/m,
  );
  expect(runtime.warnings.join("\n")).toContain('"function":"broken"');
  const leaky = runtime.functions.find(({ name }: { name: string }) => name === "leaky");
  expect(leaky.env).toEqual([
    { name: "FROM_SECRET", secretKeyRef: { name: "env", key: "key", optional: false } },
    { name: "LITERAL", value: "[redacted]" },
  ]);
  expect(runtime.files.map(({ name }: { name: string }) => name)).toContain("checkpoint.db");
});

test("a runtime that does not answer has a file as well, with the reason and the files of its folder", async () => {
  const data = folderOf({ "checkpoint.db": "planted" });
  const report = join(folderOf({}), "support.json");
  const { status, stderr } = await watchfire(["support", "--data", data, "--to", report]);
  expect([status, stderr]).toEqual([0, expect.stringMatching(/^WF_CLI_UNREACHABLE/)]);
  expect(JSON.parse(readFileSync(report, "utf8")).runtime).toEqual({
    unreachable: expect.stringMatching(/^WF_CLI_UNREACHABLE/),
    files: [{ name: "checkpoint.db", bytes: 7 }],
  });
});

test("a file that cannot be written is the user's mistake", async () => {
  const inTheWay = folderOf({ file: "" });
  const { status, stderr } = await watchfire(["support", "--data", inTheWay, "--to", join(inTheWay, "file/x.json")]);
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^WF_CLI_SUPPORT/)]);
});
