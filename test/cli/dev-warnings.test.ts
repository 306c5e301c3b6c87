// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are placeholders of manifests
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { manifest, Session, write } from "./session.ts";

const rights = `  permissions: [{ apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: [create] }]`;

test("`dev` shows once that the embedded cluster checks a kind by its schema alone", async () => {
  const folder = folderOf({
    "functions/rank/function.yaml": manifest("rank", rights, "{ apiVersion: v1, kind: Namespace }"),
    "functions/rank/handler.ts": `export default async (event, { kube, log }) => {
      if (event.object.metadata.name !== "default") return;
      const of = (name) => ({ apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name }, value: 1 });
      for (const name of ["low", "high"]) await kube.create(of(name));
      log.info("both are created");
    };`,
  });
  const dev = new Session(["dev"], {}, folder);
  await dev.says(/rank {2}both are created/);
  const lines = dev.output.match(/rank {2}the API server warns {2}warning=this cluster checks scheduling.*/g);
  expect(lines).toEqual([
    expect.stringMatching(/PriorityClass only by its schema; a real API server has further rules/),
  ]);
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});

test("`dev` shows a warning about a sample that it applies, once and with the sample's place", async () => {
  const rank = (name: string) =>
    `apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: { name: ${name} }\nvalue: 1\n`;
  const folder = folderOf({
    "functions/rank/function.yaml": manifest("rank", "", "{ apiVersion: scheduling.k8s.io/v1, kind: PriorityClass }"),
    "functions/rank/handler.ts": "export default () => {};",
    "functions/rank/sample.yaml": `${rank("low")}---\n${rank("high")}`,
  });
  const dev = new Session(["dev"], {}, folder);
  await dev.says(/rank {2}Added scheduling.k8s.io\/v1\/PriorityClass high {2}ok/);
  const lines = dev.output.match(/the API server warns .*/g);
  expect(lines).toEqual([
    expect.stringMatching(/functions\/rank\/sample\.yaml:1:1.*PriorityClass only by its schema; a real API server/),
  ]);
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});

test("`dev --values` fills manifests, reads the values again at each reload, and reports values that are unreadable or unused", async () => {
  const folder = folderOf({
    "stage.yaml": "kind: ConfigMap\nword: one\n",
    "functions/greet/function.yaml": manifest(
      "greet",
      '  env: [{ name: WORD, value: "${word}" }]\n',
      '{ apiVersion: v1, kind: "${kind}" }',
    ),
    "functions/greet/handler.ts": `export default (event, { env, log }) => log.info("word is " + env.WORD);`,
    "functions/greet/sample.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a, namespace: default }\n",
  });
  const values = join(folder, "stage.yaml");
  const reload = (spec: string) => {
    const watch = '{ apiVersion: v1, kind: "${kind}" }';
    write(join(folder, "functions/greet/function.yaml"), manifest("greet", spec, watch));
  };
  const dev = new Session(["dev", "--values", "stage.yaml"], {}, folder);
  await dev.says(/greet {2}word is one/);
  write(values, "kind: [\n");
  reload('  delivery: { concurrency: 2 }\n  env: [{ name: WORD, value: "${word}" }]\n');
  await dev.says(/WF_MANIFEST_SYNTAX stage\.yaml:/);
  write(values, "kind: Namespace\nword: two\nspare: 1\n");
  reload('  delivery: { concurrency: 3 }\n  env: [{ name: WORD, value: "${word}" }]\n');
  await dev.says(/warning: WF_MANIFEST_VALUE_UNUSED stage\.yaml:3:1: no manifest has \$\{spare\}/);
  await dev.says(/greet {2}word is two/);
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});
