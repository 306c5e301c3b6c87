import { existsSync } from "node:fs";
import { join } from "node:path";
import { startCluster } from "@watchfire/cluster";
import { expect, onTestFinished, test } from "vitest";
import { Client } from "../target/client.ts";
import { accessOf } from "../target/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";
import { TalkingProcess } from "../tools/talking-process.ts";
import { until } from "../tools/until.ts";
import { watchfire } from "./run.ts";
import { define, manifest, Session, write } from "./session.ts";

const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");
/** A program of util-linux that runs another program on a terminal. */
const script = "/usr/bin/script";

const watch = '{ apiVersion: v1, kind: ConfigMap, labelSelector: { matchLabels: { sample: "yes" } } }';
const sample = JSON.stringify({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "ada", labels: { sample: "yes" } },
});

/** A project with the functions `greet`, which has a sample, and `other`. */
function project(handler?: string, spec = "") {
  const folder = folderOf({});
  const at = {
    functions: join(folder, "functions"),
    data: join(folder, "data"),
    kubeconfig: join(folder, "kubeconfig"),
  };
  for (const name of ["greet", "other"]) define(at.functions, name, handler, manifest(name, spec, watch));
  write(join(at.functions, "greet/sample.yaml"), sample);
  return at;
}

test.runIf(existsSync(script))(
  "keys replay the last event, emit the samples, pause and resume, show the rbac, and quit",
  {
    timeout: 60_000,
  },
  async () => {
    const { functions, data } = project();
    const command = [
      process.execPath,
      bin,
      "dev",
      "--functions",
      functions,
      "--data",
      data,
      "--port",
      "0",
      "--only",
      "greet",
    ];
    const dev = new TalkingProcess(script, ["-qefc", command.join(" "), "/dev/null"]);
    await dev.says(
      /keys +r replay the last event, e emit the samples, p pause or resume, b show the rbac, o open the console, q quit/,
    );
    await dev.says(/greet {2}Added v1\/ConfigMap default\/ada {2}ok/);
    dev.type("r");
    await dev.says(/replay: greet Added ConfigMap default\/ada/);
    await dev.says(/greet {2}Added v1\/ConfigMap default\/ada {2}ok/);
    dev.type("e");
    await dev.says(/emit: ConfigMap ada/);
    await dev.says(/greet {2}Modified v1\/ConfigMap default\/ada {2}ok/);
    dev.type("p");
    await dev.says(/greet is paused/);
    dev.type("p");
    await dev.says(/greet goes on/);
    dev.type("b");
    await dev.says(/kind: ServiceAccount/);
    await dev.says(/name: watchfire-greet/);
    dev.type("?");
    await dev.says(/r replay the last event, .*q quit/);
    dev.type("q");
    expect(await dev.end()).toBe(0);
  },
);

test("with --only the chosen functions run alone, and the others go on later where they stopped", {
  timeout: 60_000,
}, async () => {
  const { functions, data } = project();
  const start = (...more: string[]) => new Session(["dev", "--functions", functions, "--data", data, ...more]);
  const all = start();
  await all.says(/greet {2}Added .* ok/);
  await until("other is told", 10_000, async () => /other {2}Added/.test(all.output) || undefined);
  all.signal("SIGINT");
  expect(await all.end()).toBe(0);
  const one = start("--only", "greet");
  await one.says(/keys|status/);
  const client = new Client(await accessOf(join(data, "kubeconfig")));
  onTestFinished(() => client.close());
  await client.patch("/api/v1/namespaces/default/configmaps/ada", { data: { a: "1" } });
  await one.says(/greet {2}Modified .* ok/);
  one.signal("SIGINT");
  expect(await one.end()).toBe(0);
  expect(one.output).not.toContain("other");
  const again = start();
  await again.says(/other {2}Modified v1\/ConfigMap default\/ada {2}ok/);
  expect(again.output).not.toMatch(/greet {2}(?:Added|Modified)/);
});

test("in a dry run nothing is written to the cluster, and the run that follows begins as if there had been none", {
  timeout: 60_000,
}, async () => {
  const copy = `export default async (event, ctx) => {
    const { name, namespace } = event.object.metadata;
    const made = await ctx.kube.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: name + "-copy", namespace } });
    ctx.log.info("made", { name: made.metadata.name });
  };`;
  const grant = `  permissions: [{ apiGroups: [""], resources: [configmaps], verbs: [create] }]`;
  const { functions, data, kubeconfig } = project(copy, grant);
  const cluster = await startCluster({ kubeconfig });
  const client = new Client(await accessOf(kubeconfig));
  onTestFinished(async () => {
    await client.close();
    await cluster.close();
  });
  await client.post("/api/v1/namespaces/default/configmaps", JSON.parse(sample));
  const start = (...more: string[]) =>
    new Session([
      "dev",
      "--functions",
      functions,
      "--data",
      data,
      "--kubeconfig",
      kubeconfig,
      "--only",
      "greet",
      ...more,
    ]);
  const dryRun = start("--dry-run");
  await dryRun.says(/dry run, not sent: .*method=POST .*to=\/api\/v1\/namespaces\/default\/configmaps .*ada-copy/);
  await dryRun.says(/made .*name=ada-copy/);
  await dryRun.says(/greet {2}Added v1\/ConfigMap default\/ada {2}ok/);
  const running = await watchfire(["dev", "--functions", functions, "--data", data, "--dry-run"]);
  expect(running.stderr).toContain("WF_CHECKPOINT_LOCKED");
  dryRun.signal("SIGINT");
  expect(await dryRun.end()).toBe(0);
  const names = async () => (await client.get("/api/v1/namespaces/default/configmaps")).items.map(nameOf);
  expect(await names()).not.toContain("ada-copy");
  const real = start();
  await real.says(/greet {2}Added v1\/ConfigMap default\/ada {2}ok/);
  expect(await names()).toContain("ada-copy");
});

test("a dry run without a cluster uses the embedded cluster of the dev that runs in the same data folder", {
  timeout: 120_000,
}, async () => {
  const { functions, data } = project();
  const command = ["dev", "--functions", functions, "--data", data];
  const running = new Session(command);
  await running.says(/stop {6}Ctrl-C/);
  await running.says(/greet {2}Added v1\/ConfigMap default\/ada {2}ok/);
  const rehearsal = new Session([...command, "--dry-run"]);
  await rehearsal.says(/dry run {3}writes are shown, not sent/);
  await rehearsal.says(/greet {2}Added v1\/ConfigMap default\/ada {2}ok/);
  rehearsal.signal("SIGINT");
  expect(await rehearsal.end()).toBe(0);
});

const nameOf = ({ metadata }: { metadata: { name: string } }): string => metadata.name;

test("a function that is not in the folder is the user's mistake", async () => {
  const { functions, data } = project();
  const { status, stderr } = await watchfire(["dev", "--functions", functions, "--data", data, "--only", "gret"]);
  expect(stderr).toContain(
    'WF_CLI_USAGE: --only takes a function of the folder, got "gret"; did you mean --only greet?',
  );
  expect(status).toBe(1);
});
