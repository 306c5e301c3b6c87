import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { refreshed } from "../../deploy/values/readme.ts";
import { schemaOf } from "../../deploy/values/schema.ts";
import { readValues } from "../../deploy/values/values.ts";
import { chart, render } from "./helm.ts";

const read = (name: string) => readFileSync(join(chart, name), "utf8");

describe("what is made of values.yaml; `npm run chart` makes it so", () => {
  test("the README has its table", () => {
    expect(read("README.md")).toBe(refreshed(read("README.md"), readValues()));
  });

  test("the schema says the same", () => {
    expect(JSON.parse(read("values.schema.json"))).toEqual(schemaOf(readValues()));
  });
});

describe("a comment's line `@schema`", () => {
  const text = '# File.\n\n# One word.\n# @schema {"enum": ["a"]}\nkey: a\ngroup:\n  # Inside.\n  list: []\n';

  test("adds to the type that the default has, and is no part of the prose", () => {
    expect(schemaOf(readValues(text))).toMatchObject({
      additionalProperties: false,
      properties: {
        key: { type: "string", default: "a", enum: ["a"], description: "One word." },
        group: { additionalProperties: false, properties: { list: { type: "array", description: "Inside." } } },
      },
    });
  });
});

describe("the chart's README", () => {
  const powerful = [
    ["impersonate", "users"],
    ["create", "serviceaccounts/token"],
    ["create", "pods"],
    ["get", "secrets"],
    ["update", "secrets"],
  ];

  test("names every powerful rule that the chart asks for", async () => {
    const rules = (await render("--set", "replicas=2,functionStatus.enabled=true")).flatMap(({ rules }) => rules ?? []);
    const asked = powerful.filter(([verb, resource]) =>
      rules.some((rule) => rule.verbs.includes(verb) && rule.resources.includes(resource)),
    );
    expect(asked).toEqual([
      ["get", "secrets"],
      ["update", "secrets"],
    ]);
    const rights = read("README.md").split("## Which rights does it grant?")[1]?.split("\n## ")[0] ?? "";
    for (const word of ["impersonate", "serviceaccounts/token", "creates pods", "checkpoint", "reads a Secret"]) {
      expect(rights).toContain(word);
    }
  });

  test("removes nothing of another chart's that is in the same release", () => {
    const commands = [...read("README.md").matchAll(/`kubectl delete [^`]*-l app\.kubernetes[^`]*`/g)].map(
      ([command]) => command,
    );
    expect(commands).toHaveLength(2);
    for (const command of commands) {
      expect(command).toContain("app.kubernetes.io/instance=<release>,app.kubernetes.io/name=watchfire");
      expect(command).toContain("-n <namespace>");
    }
  });

  test("names every kind that an uninstall leaves", async () => {
    const objects = await render("--set", "replicas=2,crds.enabled=true");
    const kept = objects.filter(({ metadata }) => metadata.annotations?.["helm.sh/resource-policy"] === "keep");
    const left = read("README.md").split("## Which objects stay after an uninstall?")[1]?.split("\n## ")[0] ?? "";
    for (const kind of new Set(["PersistentVolumeClaim", "Lease", ...kept.map((object) => object.kind)])) {
      expect(left).toContain(`| ${kind} `);
    }
  });
});
