import { beforeAll, describe, expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { widgetDefinition } from "../target/crd.ts";
import { admin, createNamespace, Kubectl, removeAtEnd, unique } from "../target/fixture.ts";

describe("kubectl writes", () => {
  let kubectl: Kubectl;
  let namespace: string;
  beforeAll(async () => {
    namespace = await createNamespace();
    kubectl = new Kubectl(namespace);
  });
  const config = (name: string, data: string) =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n${data
      .split(" ")
      .map((pair) => `  ${pair.replace("=", ": ")}\n`)
      .join("")}`;
  const read = (name: string): Promise<Body> => admin.get(`/api/v1/namespaces/${namespace}/configmaps/${name}`);
  const deployment = (name: string, containers = "      - { name: main, image: 'i:1' }\n") => `apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name} }
spec:
  replicas: 1
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec:
      containers:
${containers}`;
  const readDeployment = (name: string): Promise<Body> =>
    admin.get(`/apis/apps/v1/namespaces/${namespace}/deployments/${name}`);

  test("objects of several kinds from one YAML stream", async () => {
    const name = unique("c");
    const output = await kubectl.ok(["create", "-f", "-"], `${config(name, "a=one")}---\n${deployment(name)}`);
    expect(output).toBe(`configmap/${name} created\ndeployment.apps/${name} created\n`);
  });

  test("no object whose YAML has an unknown field, and names it", async () => {
    const run = await kubectl.run(["create", "-f", "-"], `${config(unique("c"), "a=one")}colour: red\n`);
    expect(run.status).toBe(1);
    expect(run.stderr).toContain('unknown field "colour"');
  });

  test("objects by its own generators", async () => {
    const name = unique("g");
    await kubectl.ok(["create", "configmap", name, "--from-literal=k=v"]);
    await kubectl.ok(["create", "secret", "generic", name, "--from-literal=k=v"]);
    await kubectl.ok(["create", "serviceaccount", name]);
    expect((await kubectl.ok(["create", "token", name])).split(".")).toHaveLength(3);
    expect((await read(name)).data).toEqual({ k: "v" });
  });

  test("by client-side apply: created, unchanged, configured, and what is left out goes", async () => {
    const name = unique("a");
    const apply = (data: string) => kubectl.ok(["apply", "-f", "-"], config(name, data));
    expect(await apply("a=one b=two")).toBe(`configmap/${name} created\n`);
    expect(await apply("a=one b=two")).toBe(`configmap/${name} unchanged\n`);
    await admin.patch(`/api/v1/namespaces/${namespace}/configmaps/${name}`, { data: { theirs: "kept" } });
    expect(await apply("a=changed")).toBe(`configmap/${name} configured\n`);
    expect((await read(name)).data).toEqual({ a: "changed", theirs: "kept" });
  });

  test("by client-side apply a deployment's containers by name", async () => {
    const name = unique("d");
    const both = "      - { name: main, image: 'i:1' }\n      - { name: side, image: 'i:1' }\n";
    await kubectl.ok(["apply", "-f", "-"], deployment(name, both));
    await kubectl.ok(["apply", "-f", "-"], deployment(name, "      - { name: main, image: 'i:2' }\n"));
    const { containers } = (await readDeployment(name)).spec.template.spec;
    expect(containers.map((c: Body) => [c.name, c.image])).toEqual([["main", "i:2"]]);
  });

  test("by server-side apply, refuses another manager's field, and takes it with force", async () => {
    const name = unique("s");
    const apply = (value: string, ...flags: string[]) =>
      kubectl.run(["apply", "--server-side", "-f", "-", ...flags], config(name, `k=${value}`));
    expect((await apply("one", "--field-manager=first")).stdout).toBe(`configmap/${name} serverside-applied\n`);
    const refused = await apply("two", "--field-manager=second");
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain('conflict with "first": .data.k');
    expect((await apply("two", "--field-manager=second", "--force-conflicts")).status).toBe(0);
    expect((await read(name)).data).toEqual({ k: "two" });
  });

  test("a difference before it applies", async () => {
    const name = unique("diff");
    await kubectl.ok(["apply", "-f", "-"], config(name, "k=one"));
    expect((await kubectl.run(["diff", "-f", "-"], config(name, "k=one"))).status).toBe(0);
    const run = await kubectl.run(["diff", "-f", "-"], config(name, "k=two"));
    expect(run.status).toBe(1);
    expect(run.stdout).toMatch(/^-\s+k: one\n\+\s+k: two$/m);
    expect((await read(name)).data).toEqual({ k: "one" });
  });

  test("nothing in a server-side dry run", async () => {
    const name = unique("dry");
    expect(await kubectl.ok(["apply", "--dry-run=server", "-f", "-"], config(name, "k=v"))).toContain(
      "created (server dry run)",
    );
    expect((await kubectl.run(["get", "cm", name])).status).toBe(1);
  });

  test("patches of three types", async () => {
    const name = unique("p");
    await kubectl.ok(["create", "-f", "-"], deployment(name));
    await kubectl.ok([
      "patch",
      "deployment",
      name,
      "-p",
      '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"i:2"}]}}}}',
    ]);
    await kubectl.ok(["patch", "deployment", name, "--type=merge", "-p", '{"spec":{"replicas":3}}']);
    await kubectl.ok([
      "patch",
      "deployment",
      name,
      "--type=json",
      "-p",
      '[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]',
    ]);
    expect(await readDeployment(name)).toMatchObject({
      metadata: { labels: { a: "b" } },
      spec: { replicas: 3, template: { spec: { containers: [{ name: "main", image: "i:2" }] } } },
    });
  });

  test("a status by its subresource", async () => {
    const name = unique("st");
    await kubectl.ok(["create", "-f", "-"], deployment(name));
    await kubectl.ok([
      "patch",
      "deployment",
      name,
      "--subresource=status",
      "--type=merge",
      "-p",
      '{"status":{"replicas":1}}',
    ]);
    expect((await readDeployment(name)).status.replicas).toBe(1);
  });

  test("labels and annotations, and takes them off again", async () => {
    const name = unique("l");
    await kubectl.ok(["create", "configmap", name]);
    await kubectl.ok(["label", "configmap", name, "a=b", "c=d"]);
    await kubectl.ok(["annotate", "configmap", name, "my.domain/note=hello there"]);
    expect((await kubectl.run(["label", "configmap", name, "a=other"])).status).toBe(1);
    await kubectl.ok(["label", "configmap", name, "a=other", "--overwrite"]);
    await kubectl.ok(["label", "configmap", name, "c-"]);
    expect((await read(name)).metadata).toMatchObject({
      labels: { a: "other" },
      annotations: { "my.domain/note": "hello there" },
    });
  });

  test("a scale, and refuses it when the current one is another", async () => {
    const name = unique("sc");
    await kubectl.ok(["create", "-f", "-"], deployment(name));
    expect(await kubectl.ok(["scale", "deployment", name, "--replicas=4"])).toBe(`deployment.apps/${name} scaled\n`);
    expect((await readDeployment(name)).spec.replicas).toBe(4);
    expect((await kubectl.run(["scale", "deployment", name, "--replicas=5", "--current-replicas=9"])).status).toBe(1);
  });

  test("a whole object by replace", async () => {
    const name = unique("r");
    await kubectl.ok(["create", "-f", "-"], config(name, "a=one"));
    await kubectl.ok(["replace", "-f", "-"], config(name, "b=two"));
    expect((await read(name)).data).toEqual({ b: "two" });
  });

  test("while a watch of its own prints each change", async () => {
    const name = unique("w");
    await kubectl.ok(["create", "configmap", name]);
    const lines = kubectl.lines(["get", "cm", name, "--watch", "--output-watch-events"]);
    const next = async () => (await lines.next()).value?.split(/\s+/).slice(0, 2);
    expect(await next()).toEqual(["EVENT", "NAME"]);
    expect(await next()).toEqual(["ADDED", name]);
    await kubectl.ok(["label", "cm", name, "a=b"]);
    expect(await next()).toEqual(["MODIFIED", name]);
    await kubectl.ok(["delete", "cm", name]);
    expect(await next()).toEqual(["DELETED", name]);
    await lines.return(undefined);
  });

  test("and waits for a condition, a value and a deletion", async () => {
    const name = unique("wait");
    await kubectl.ok(["create", "-f", "-"], deployment(name));
    const condition = kubectl.ok(["wait", `deployment/${name}`, "--for=condition=Available", "--timeout=20s"]);
    await kubectl.ok([
      "patch",
      "deployment",
      name,
      "--subresource=status",
      "--type=merge",
      "-p",
      '{"status":{"conditions":[{"type":"Available","status":"True"}]}}',
    ]);
    expect(await condition).toContain("condition met");
    await kubectl.ok(["wait", `deployment/${name}`, "--for=jsonpath={.spec.replicas}=1", "--timeout=20s"]);
    const deletion = kubectl.ok(["wait", `deployment/${name}`, "--for=delete", "--timeout=20s"]);
    await kubectl.ok(["delete", "deployment", name, "--wait=false"]);
    await deletion;
  });

  test.each(["apply", "apply --server-side", "create", "diff"])(
    "and says that a kind is not known whose definition is not there: %s",
    async (words) => {
      const group = `${unique("g")}.my.domain`;
      const widget = { apiVersion: `${group}/v1`, kind: "Widget", metadata: { name: "w" }, spec: { size: 2 } };
      const run = await kubectl.run([...words.split(" "), "-f", "-"], JSON.stringify(widget));
      expect(run.status).not.toBe(0);
      expect(run.stderr).toContain(`no matches for kind "Widget" in version "${group}/v1"`);
      expect(run.stderr).toContain("ensure CRDs are installed first");
    },
  );

  test("a definition, then at once an instance of it", async () => {
    const group = `${unique("g")}.my.domain`;
    const definition = widgetDefinition(group);
    removeAtEnd(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definition.metadata.name}`);
    await kubectl.ok(["apply", "-f", "-"], JSON.stringify(definition));
    await kubectl.ok(["wait", "--for=condition=Established", `crd/${definition.metadata.name}`, "--timeout=20s"]);
    const widget = { apiVersion: `${group}/v1`, kind: "Widget", metadata: { name: "w" }, spec: { size: 2 } };
    expect(await kubectl.ok(["apply", "-f", "-"], JSON.stringify(widget))).toBe(`widget.${group}/w created\n`);
    await kubectl.ok(["scale", `widgets.${group}/w`, "--replicas=2"]);
    expect(await kubectl.ok(["get", `widgets.${group}`, "w", "-o", "jsonpath={.spec.colour} {.spec.replicas}"])).toBe(
      "red 2",
    );
    const wrong = await kubectl.run(["apply", "-f", "-"], JSON.stringify({ ...widget, spec: { size: 99 } }));
    expect(wrong.status).toBe(1);
    expect(wrong.stderr).toContain(
      "spec.size: Invalid value: 99: spec.size in body should be less than or equal to 10",
    );
  });

  test("deletions by name, by label and by file", async () => {
    const [one, two, three] = [unique("x"), unique("x"), unique("x")];
    for (const name of [one, two, three]) await kubectl.ok(["create", "-f", "-"], config(name, "a=one"));
    expect(await kubectl.ok(["delete", "cm", one])).toContain(`configmap "${one}" deleted`);
    await kubectl.ok(["label", "cm", two, `sweep=${two}`]);
    await kubectl.ok(["delete", "cm", "-l", `sweep=${two}`]);
    await kubectl.ok(["delete", "-f", "-"], config(three, "a=one"));
    expect((await kubectl.run(["get", "cm", one, two, three])).stdout).toBe("");
  });
});
