import { beforeAll, describe, expect, test } from "vitest";
import { type Definition, defineWidgets, widgetSchema } from "../target/crd.ts";
import { admin, createNamespace, Kubectl, unique } from "../target/fixture.ts";

describe("kubectl reads", () => {
  let kubectl: Kubectl;
  let namespace: string;
  let widgets: Definition;
  beforeAll(async () => {
    namespace = await createNamespace();
    kubectl = new Kubectl(namespace);
    await admin.post(`/api/v1/namespaces/${namespace}/configmaps`, {
      metadata: { name: "settings", labels: { app: "web" } },
      data: { colour: "red", size: "2" },
    });
    const labels = { app: "web" };
    await admin.post(`/apis/apps/v1/namespaces/${namespace}/deployments`, {
      metadata: { name: "web" },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "i:1" }] } },
      },
    });
    const columns = [{ name: "Size", type: "integer", jsonPath: ".spec.size" }];
    widgets = await defineWidgets({
      names: { shortNames: [unique("wd").replace("-", "")] },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: widgetSchema },
          additionalPrinterColumns: columns,
        },
      ],
    });
    await admin.post(widgets.in(namespace), widgets.widget("w", { size: 7 }));
  });
  const words = (output: string) =>
    output
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/\s+/));

  test("a table of objects", async () => {
    const lines = words(await kubectl.ok(["get", "configmaps", "-l", "app=web"]));
    expect(lines[0]).toEqual(["NAME", "DATA", "AGE"]);
    expect(lines[1]?.slice(0, 2)).toEqual(["settings", "2"]);
    expect(lines).toHaveLength(2);
  });

  test("by short name, and several kinds at once", async () => {
    expect((await kubectl.ok(["get", "cm/settings", "deploy/web", "-o", "name"])).trim().split("\n")).toEqual([
      "configmap/settings",
      "deployment.apps/web",
    ]);
  });

  test("a deployment's replicas in its columns", async () => {
    const lines = words(await kubectl.ok(["get", "deployment", "web"]));
    expect(lines[0]).toEqual(["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
    expect(lines[1]?.slice(0, 2)).toEqual(["web", "0/2"]);
  });

  test("one object as YAML, JSON and JSONPath", async () => {
    expect(await kubectl.ok(["get", "cm", "settings", "-o", "yaml"])).toContain("data:\n  colour: red\n");
    expect(JSON.parse(await kubectl.ok(["get", "cm", "settings", "-o", "json"])).data).toEqual({
      colour: "red",
      size: "2",
    });
    expect(await kubectl.ok(["get", "cm", "settings", "-o", "jsonpath={.data.colour}"])).toBe("red");
  });

  test("across namespaces, with the namespace as a column", async () => {
    const lines = words(
      await kubectl.ok(["get", "cm", "-A", "--field-selector", `metadata.namespace=${namespace}`, "-l", "app=web"]),
    );
    expect(lines[0]).toEqual(["NAMESPACE", "NAME", "DATA", "AGE"]);
    expect(lines[1]?.slice(0, 2)).toEqual([namespace, "settings"]);
  });

  test("in chunks", async () => {
    const lines = words(await kubectl.ok(["get", "namespaces", "--chunk-size=2"]));
    expect(lines.map((line) => line[0])).toEqual(expect.arrayContaining([namespace, "default", "kube-system"]));
  });

  test("a custom resource by kind, by short name and with its columns", async () => {
    const { names } = (await admin.get(widgets.crd)).spec;
    for (const by of [`widgets.${widgets.group}`, names.shortNames[0]]) {
      const lines = words(await kubectl.ok(["get", by]));
      expect(lines).toEqual([
        ["NAME", "SIZE"],
        ["w", "7"],
      ]);
    }
  });

  test("what is not there as an error with status 1", async () => {
    const run = await kubectl.run(["get", "cm", "absent"]);
    expect(run.status).toBe(1);
    expect(run.stderr).toContain('Error from server (NotFound): configmaps "absent" not found');
  });

  test("a kind that is not served as an error", async () => {
    const run = await kubectl.run(["get", "gadgets"]);
    expect(run.status).toBe(1);
    expect(run.stderr).toContain(`the server doesn't have a resource type "gadgets"`);
  });

  test("a description with the object's events", async () => {
    const { uid } = (await admin.get(`/api/v1/namespaces/${namespace}/configmaps/settings`)).metadata;
    await admin.post(`/api/v1/namespaces/${namespace}/events`, {
      metadata: { name: unique("e") },
      reason: "Scolded",
      message: "too red",
      type: "Warning",
      involvedObject: { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace, uid },
      source: { component: "teller" },
      firstTimestamp: "2026-01-02T03:04:05Z",
      lastTimestamp: "2026-01-02T03:04:05Z",
      count: 1,
    });
    const output = await kubectl.ok(["describe", "configmap", "settings"]);
    expect(output).toMatch(/^Name: +settings$/m);
    expect(output).toContain("colour:\n----\nred");
    expect(output).toMatch(/Warning +Scolded +.* teller +too red/);
  });

  test("a description of a custom resource", async () => {
    const output = await kubectl.ok(["describe", `widgets.${widgets.group}`, "w"]);
    expect(output).toMatch(/^Kind: +Widget$/m);
    expect(output).toMatch(/Size: +7/);
  });

  test("events", async () => {
    await admin.post(`/api/v1/namespaces/${namespace}/events`, {
      metadata: { name: unique("e") },
      reason: "Praised",
      message: "well done",
      type: "Normal",
      involvedObject: { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace },
      lastTimestamp: "2026-01-02T03:04:05Z",
      count: 1,
    });
    expect(await kubectl.ok(["get", "events"])).toMatch(/Normal +Praised +configmap\/settings +well done/);
    expect(await kubectl.ok(["events", "--for", "configmap/settings"])).toContain("well done");
  });

  test("the resources that are served", async () => {
    const lines = words(await kubectl.ok(["api-resources"]));
    expect(lines[0]).toEqual(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]);
    expect(lines).toContainEqual(["configmaps", "cm", "v1", "true", "ConfigMap"]);
    expect(lines).toContainEqual(["deployments", "deploy", "apps/v1", "true", "Deployment"]);
    expect(lines).toContainEqual(["namespaces", "ns", "v1", "false", "Namespace"]);
    expect(lines.some((line) => line.includes(widgets.apiVersion) && line.includes("Widget"))).toBe(true);
  });

  test("the versions that are served", async () => {
    const versions = (await kubectl.ok(["api-versions"])).split("\n");
    expect(versions).toEqual(expect.arrayContaining(["v1", "apps/v1", widgets.apiVersion]));
  });

  test("the server's version", async () => {
    expect(await kubectl.ok(["version"])).toMatch(/Server Version: v1\.\d+/);
  });

  test("an explanation of a built-in field", async () => {
    const output = await kubectl.ok(["explain", "deployment.spec.replicas"]);
    expect(output).toMatch(/^KIND: +Deployment$/m);
    expect(output).toMatch(/FIELD: replicas <integer>/);
  });

  test("an explanation of a custom resource's field", async () => {
    const output = await kubectl.ok(["explain", `widgets.${widgets.group}`, "--recursive"]);
    expect(output).toMatch(/KIND: +Widget/);
    expect(output).toMatch(/colour\s+<string>/);
  });

  test("an explanation from the older of the two documents", async () => {
    const explain = (...words: string[]) => kubectl.ok(["explain", ...words, "--output", "plaintext-openapiv2"]);
    expect(await explain("deployment.spec.replicas")).toMatch(/^FIELD: +replicas <integer>$/m);
    expect(await explain(`widgets.${widgets.group}`, "--recursive")).toMatch(/^ +colour\t<string>$/m);
    expect(await explain("configmap.data")).toMatch(/^FIELD: +data <map\[string\]string>$/m);
  });

  test("what one may do", async () => {
    expect((await kubectl.ok(["auth", "can-i", "delete", "secrets"])).trim()).toBe("yes");
    const denied = await kubectl.run(["auth", "can-i", "delete", "secrets", "--as", "jane"]);
    expect(denied).toMatchObject({ status: 1, stdout: "no\n" });
    expect(await kubectl.ok(["auth", "whoami"])).toMatch(/Username +\S+/);
  });
});
