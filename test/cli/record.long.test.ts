import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Client } from "../target/client.ts";
import { accessOf } from "../target/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";
import { define, manifest, Session } from "./session.ts";

const handler = `export default async (event, ctx) => {
  const { name, namespace } = event.object.metadata;
  const seen = Object.keys(event.object.data).join();
  await ctx.kube.patch({ apiVersion: "v1", kind: "Secret", name, namespace }, { metadata: { annotations: { seen } } });
};`;

test("record saves what a function is given, without secrets and over no file, and `watchfire test` runs it", {
  timeout: 60_000,
}, async () => {
  const folder = folderOf({});
  const [functions, data] = [join(folder, "functions"), join(folder, "data")];
  const grant = `  permissions: [{ apiGroups: [""], resources: [secrets], verbs: [list, patch] }]\n`;
  const watch =
    "{ apiVersion: v1, kind: Secret, namespaceSelector: { matchNames: [default] }, changedFields: [.data] }";
  define(functions, "greet", handler, manifest("greet", grant, watch));
  const dev = new Session(["dev", "--functions", functions, "--data", data, "--port", "0"]);
  await dev.says(/stop +Ctrl-C/);
  const client = new Client(await accessOf(join(data, "kubeconfig")));
  const password = Buffer.from("hunter22").toString("base64");
  const object = { apiVersion: "v1", kind: "Secret", metadata: { name: "db" }, data: { password } };
  await client.post("/api/v1/namespaces/default/secrets", object);
  await dev.says(/greet {2}Added v1\/Secret default\/db {2}ok/);

  const record = (...more: string[]) =>
    watchfire(["record", "greet", "--functions", functions, "--data", data, ...more]);
  const events = join(functions, "greet/events");
  for (const again of [[], [], ["--force"]]) {
    const { stdout, stderr, status } = await record("--object", "default/db", ...again);
    expect([stderr, status]).toEqual(["recording the events of greet\n", 0]);
    expect(stdout).toMatch(/greet\/events\/\w+-db(-2)?\.json\n$/);
  }
  const [first = "", ...others] = readdirSync(events).sort();
  expect(others).toHaveLength(1);
  const text = readFileSync(join(events, first), "utf8");
  expect(JSON.parse(text).event.object.metadata).toMatchObject({ name: "db", namespace: "default" });
  expect(text).not.toContain(password);
  expect(text).not.toContain("managedFields");
  expect(await watchfire(["test", "--functions", functions])).toMatchObject({
    stdout: "2 passed, 0 failed\n",
    status: 0,
  });

  expect(await record("--timeout", "1ms")).toMatchObject({
    stderr: expect.stringContaining("WF_CLI_NOT_RECORDED"),
    status: 1,
  });
  expect(await record("--object", "default/db", "--to", join(folder, "functions/greet/handler.ts"))).toMatchObject({
    stderr: expect.stringContaining("WF_CLI_FIXTURE"),
    status: 1,
  });
  expect(await record("--count", "2", "--follow")).toMatchObject({
    stderr: expect.stringContaining("WF_CLI_USAGE"),
    status: 1,
  });
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});
