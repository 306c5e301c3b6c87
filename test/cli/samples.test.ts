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

test.each([
  ["that is no YAML", "kind: [ConfigMap\nmetadata: {}", /sample\.yaml:\d+:\d+: not valid YAML: /],
  [
    "without a name",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {}",
    /:4:3 metadata\.name: expected string/,
  ],
  ["of no kind", "apiVersion: v1\nkind: Confgmap\nmetadata: { name: a }", /sample\.yaml:2:7 kind: .*Confgmap/],
  [
    "with a wrong field",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: Ä }",
    /sample\.yaml:3:\d+ metadata\.name: /,
  ],
  ["with nothing in it", "# soon", /sample\.yaml:1:1: the file declares nothing/],
  ["that is a folder", undefined, /sample\.yaml: a folder is where a file should be/],
])("a sample %s is told of with its place, the others are applied, and once mended so is it", async (_, text, said) => {
  const folder = folderOf({});
  const functions = join(folder, "functions");
  const file = join(functions, "a", "sample.yaml");
  for (const name of ["a", "b"]) define(functions, name, undefined, manifest(name, "", watch.replace("yes", '"yes"')));
  if (text === undefined) mkdirSync(file);
  else write(file, text);
  write(join(functions, "b", "sample.yaml"), sample("of-b"));
  const dev = new Session(["dev", "--functions", functions, "--data", join(folder, "data")]);
  await dev.says(/b {2}Added v1\/ConfigMap default\/of-b {2}ok/);
  await until("it tells of the sample", 10_000, async () => dev.output.includes("sample not applied"));
  const line = dev.output.slice(dev.output.indexOf("sample not applied"));
  expect(line).toMatch(/WF_DEV_SAMPLE \S+functions\/a\/sample\.yaml/);
  expect(line).toMatch(said);

  rmSync(file, { recursive: true });
  write(file, sample("of-a"));
  await dev.says(/a {2}Added v1\/ConfigMap default\/of-a {2}ok/);
});
