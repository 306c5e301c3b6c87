import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { Client } from "../target/client.ts";
import { accessOf } from "../target/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { define, manifest, Session, write } from "./session.ts";

const watch = "{ apiVersion: v1, kind: ConfigMap, labelSelector: { matchLabels: { sample: yes } } }";
const sample = (name: string) =>
  JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels: { sample: "yes" } } });

test("a sample is applied once: what is deleted stays deleted, and a function that comes later has its own", async () => {
  const folder = folderOf({});
  const functions = join(folder, "functions");
  const data = join(folder, "data");
  const start = () => new Session(["dev", "--functions", functions, "--data", data, "--port", "0"]);
  const give = (name: string) => {
    define(functions, name, undefined, manifest(name, "", watch.replace("yes", '"yes"')));
    write(join(functions, name, "sample.yaml"), sample(`of-${name}`));
  };

  give("a");
  const first = start();
  await first.says(/a {2}Added v1\/ConfigMap default\/of-a {2}ok/);
  await new Client(await accessOf(join(data, "kubeconfig"))).delete("/api/v1/namespaces/default/configmaps/of-a");
  await first.says(/a {2}Deleted v1\/ConfigMap default\/of-a {2}ok/);
  first.signal("SIGINT");
  expect(await first.end()).toBe(0);

  give("b");
  const second = start();
  await second.says(/b {2}Added v1\/ConfigMap default\/of-b {2}ok/);
  expect(second.output).not.toContain("of-a");
  const told =
    /a\/sample\.yaml is not applied again, and its object is gone: .* apply -f \S+a\/sample\.yaml.* remove \S+data$/m;
  await until("it tells of the sample", 10_000, async () => told.test(stripVTControlCharacters(second.output)));
  expect(second.output).not.toContain("b/sample.yaml is not");
  second.signal("SIGINT");
  expect(await second.end()).toBe(0);
});

/** Bad samples: the content of the file (a folder takes its place if there is no content), and the message. */
const badSamples: readonly (readonly [name: string, text: string | undefined, said: RegExp])[] = [
  ["no-yaml", "kind: [ConfigMap\nmetadata: {}", /:\d+:\d+: not valid YAML: /],
  ["no-name", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {}", /:4:3 metadata\.name: expected string/],
  ["no-kind", "apiVersion: v1\nkind: Confgmap\nmetadata: { name: a }", /:2:7 kind: .*Confgmap/],
  ["wrong-field", "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: Ä }", /:3:\d+ metadata\.name: /],
  ["empty", "# soon", /:1:1: the file declares nothing/],
  ["folder", undefined, /: a folder is where a file should be/],
];

test("a sample that cannot be applied is told of with its place, the others are applied, and once mended so is it", async () => {
  const folder = folderOf({});
  const functions = join(folder, "functions");
  const fileOf = (name: string) => join(functions, name, "sample.yaml");
  const give = (name: string) => define(functions, name, undefined, manifest(name, "", watch.replace("yes", '"yes"')));
  for (const [name, text] of badSamples) {
    give(name);
    if (text === undefined) mkdirSync(fileOf(name));
    else write(fileOf(name), text);
  }
  give("good");
  write(fileOf("good"), sample("of-good"));
  const dev = new Session(["dev", "--functions", functions, "--data", join(folder, "data")]);
  await dev.says(/good {2}Added v1\/ConfigMap default\/of-good {2}ok/);
  for (const [name, , said] of badSamples) {
    const told = new RegExp(`WF_DEV_SAMPLE \\S+functions/${name}/sample\\.yaml${said.source}`);
    await until(`it tells of the sample ${name}`, 10_000, async () => told.test(stripVTControlCharacters(dev.output)));
  }

  for (const [name] of badSamples) {
    rmSync(fileOf(name), { recursive: true });
    write(fileOf(name), sample(`of-${name}`));
    await dev.says(new RegExp(`good {2}Added v1/ConfigMap default/of-${name} {2}ok`));
  }
});
