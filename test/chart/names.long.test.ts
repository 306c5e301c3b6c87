import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { dnsLabel, dnsSubdomain, isLabelValue } from "../../runtime/kube/names.ts";
import type { Body } from "../target/client.ts";
import { chart, helm, renderAs } from "./helm.ts";

/** Syntax of a Service's name (RFC 1035), the only one before Kubernetes 1.34. */
const serviceName = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Valid names of a release (Helm's `chartutil.ValidateReleaseName`). */
const releaseName = fc
  .stringMatching(/^[a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?$/)
  .filter((name) => !/\.[-.]|-\./.test(name));

function expectValidNames(objects: readonly Body[]): void {
  for (const { kind, metadata } of objects) {
    if (kind === "Service") expect(metadata.name).toMatch(serviceName);
    else if (!kind.startsWith("Cluster")) expect(metadata.name).toMatch(dnsSubdomain);
    // A pod's label contains the StatefulSet's name and a hash of 10 characters.
    if (kind === "StatefulSet") expect(`${metadata.name}-0123456789`).toMatch(dnsLabel);
    for (const value of Object.values(metadata.labels ?? {})) expect(value).toSatisfy(isLabelValue);
  }
}

test("whatever release and overrides are called, the names are valid or refused", async () => {
  const override = fc.oneof(fc.constant(""), fc.stringMatching(/^[a-z0-9][-a-z0-9]{0,62}$/), fc.string());
  await fc.assert(
    fc.asyncProperty(releaseName, override, override, async (release, nameOverride, fullnameOverride) => {
      const overrides = Object.entries({ nameOverride, fullnameOverride });
      const flags = overrides.flatMap(([key, value]) => ["--set-json", `${key}=${JSON.stringify(value)}`]);
      const rendered = await renderAs(release, "--set", "replicas=2", ...flags).catch((error: Error) => error.message);
      if (typeof rendered === "string") {
        expect(rendered).toMatch(/at '\/(full)?nameOverride': |the objects would be called/);
      } else expectValidNames(rendered);
    }),
    { numRuns: 25 },
  );
});

test("a long name is cut where a name can end", async () => {
  expectValidNames(await renderAs(`${"a".repeat(50)}--b`));
  expectValidNames(await renderAs("events", "--set", `nameOverride=${"a".repeat(50)}--b`));
});

describe.each(["my.release", "1st"])("a release called %s", (release) => {
  test("is refused with a hint, and taken with a full name of its own", async () => {
    await expect(renderAs(release)).rejects.toThrow(
      /"\S+-watchfire", which is not a valid Service name.*fullnameOverride/,
    );
    expectValidNames(await renderAs(release, "--set", "fullnameOverride=events"));
  });
});

test.each([
  "nameOverride=a.b",
  "nameOverride=Events",
  "nameOverride=-events",
  "fullnameOverride=a.b",
  "fullnameOverride=1st",
  "fullnameOverride=Events",
  `fullnameOverride=${"a".repeat(53)}`,
  "namespaceOverride=a.b",
  "serviceAccount.name=a/b",
  `serviceAccount.name=${"a".repeat(241)}`,
  "persistence.storageClass=Fast SSD",
  "priorityClassName=a_b",
])("%s is refused", async (set) => {
  await expect(renderAs("events", "--set", set)).rejects.toThrow(`/${set.split("=")[0]?.replace(".", "/")}`);
});

test("what YAML would take for something else stays a name", async () => {
  const sets = "fullnameOverride=null-1,serviceAccount.name=1e3,replicas=2,networkPolicy.enabled=true";
  const text = await helm(
    "template",
    "true",
    chart,
    "--namespace",
    "1234",
    "--set",
    sets,
    "--set-string",
    "nameOverride=12",
  );
  const objects = parseAllDocuments(text).flatMap((document) => (document.toJS() as Body | null) ?? []);
  const names = (node: unknown): unknown[] => {
    if (typeof node !== "object" || node === null) return [];
    return Object.entries(node).flatMap(([key, value]) => {
      const named = ["name", "namespace", "serviceName", "serviceAccountName"].includes(key);
      const labels = ["labels", "matchLabels", "annotations"].includes(key);
      return named ? [value] : labels ? Object.values(value) : names(value);
    });
  };
  const found = names(objects);
  expect(found).toEqual(expect.arrayContaining(["1234", "1e3", "true", "12"]));
  expect(found.filter((name) => typeof name !== "string")).toEqual([]);
});
