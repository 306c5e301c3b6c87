import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { checkExpression } from "../../runtime/engine/filter/check-expression.ts";
import { readManifests } from "../../runtime/manifest/read.ts";
import { folderOf } from "../tools/folder.ts";

// Thousands of manifests are read; that takes 20 s while other files keep all cores busy.
vi.setConfig({ testTimeout: 60_000 });

/** A valid manifest that uses every field. */
const whole = {
  apiVersion: "watchfire.dev/v1alpha1",
  kind: "Function",
  metadata: { name: "f" },
  spec: {
    handler: "./handler.ts",
    triggers: [
      {
        name: "settings",
        watch: {
          apiVersion: "v1",
          kind: "ConfigMap",
          namespaceSelector: { matchNames: ["team-a", "team-b"] },
          labelSelector: {
            matchLabels: { sync: "true" },
            matchExpressions: [{ key: "tier", operator: "In", values: ["a", "b"] }],
          },
          fieldSelector: "metadata.name!=x",
          events: ["Added", "Modified"],
          initialEvents: "Skip",
          changedFields: [".data", '.metadata.annotations["a.b/c"]'],
          matchConditions: [{ name: "has-data", expression: "size(object.data) > 0" }],
          lastBody: "Metadata",
          object: "Full",
        },
      },
    ],
    permissions: [
      { apiGroups: [""], resources: ["pods/status"], verbs: ["get"], resourceNames: ["a"], namespaces: ["b"] },
    ],
    delivery: {
      concurrency: 2,
      mode: "Latest",
      timeout: "30s",
      retry: { maxAttempts: 3, initialDelay: "1s", maxDelay: "5m", factor: 1.5 },
      onFailure: "Block",
    },
    resources: { memory: "64Mi", cpuPerEvent: "500ms" },
    isolation: "Event",
    trustGroup: "payments",
    egress: [{ host: "hooks.slack.com", ports: [443] }],
    env: [
      { name: "A", value: "x" },
      { name: "B", valueFrom: { secretKeyRef: { name: "s", key: "k", optional: true } } },
    ],
  },
};
const text = stringify(whole);

/** Texts with a meaning to YAML, to the schema or to a decoder. */
const scraps = fc.oneof(
  fc.constantFrom(
    ..."{ } [ ] : - ? , # & * ! | > ' \" % @ ` ~ \t \n \r \0 \\ 0 --- ... &a *a <<: !!int !!binary !!set null .inf".split(" "),
  ),
  fc.constantFrom("\n---\n", "\n  ", " - ", ": ", "%YAML 1.1\n---\n", "\u2028", "\ufeff", "\ud800", "__proto__: 1\n", "&a [*a]"),
  fc.string({ maxLength: 4, unit: "binary" }),
); // biome-ignore format: tables

/** Replaces a part of a text by another. */
const edit = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), cut: fc.nat(40), put: scraps });
const editedText = fc.array(edit, { minLength: 1, maxLength: 6 }).map((edits) =>
  edits.reduce((before, { at, cut, put }) => {
    const start = Math.floor(at * before.length);
    return before.slice(0, start) + put + before.slice(start + cut);
  }, text),
);

/** The path of every value in a value. */
const paths = (value: unknown, path: readonly string[] = []): (readonly string[])[] =>
  typeof value === "object" && value !== null
    ? [path, ...Object.entries(value).flatMap(([key, member]) => paths(member, [...path, key]))]
    : [path];

function replaced(value: unknown, [key, ...rest]: readonly string[], by: unknown, as: string | undefined): unknown {
  if (key === undefined) return by;
  if (Array.isArray(value)) return value.map((each, at) => (String(at) === key ? replaced(each, rest, by, as) : each));
  const entries = Object.entries(value as object).map(([name, member]) =>
    name !== key ? [name, member] : rest.length === 0 ? [as ?? name, by] : [name, replaced(member, rest, by, as)],
  );
  return Object.fromEntries(entries.filter(([, member]) => member !== undefined));
}

/** A manifest with one value replaced, removed, or renamed. */
const changedValue = fc
  .record({
    path: fc.constantFrom(...paths(whole)),
    by: fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(undefined, "", "30", Number.POSITIVE_INFINITY, -1, "x".repeat(300)),
      fc.string(),
    ),
    as: fc.option(fc.string(), { nil: undefined }),
  })
  .map(({ path, by, as }) => stringify(replaced(whole, path, by, as)) ?? "");

/** Reads a text as a manifest next to an existing handler. */
function reader() {
  const folder = folderOf({ "handler.ts": "" });
  return (manifest: string) => readManifests(manifest, "function.yaml", folder, checkExpression);
}

describe("reading a manifest", () => {
  it("accepts the one that the mutations start from", () => {
    expect(reader()(text).map(({ manifest, faults }) => [manifest?.name, faults])).toEqual([["f", []]]);
  });

  it.each([
    ["text", editedText],
    ["values", changedValue],
  ])("gives a manifest or faults with file, line and column, whatever is done to its %s", (_what, mutants) => {
    const read = reader();
    fc.assert(
      fc.property(mutants, (mutant) => {
        const results = read(mutant);
        expect(results.length).toBeGreaterThan(0);
        const last = mutant.split(/\r\n|\n|\r/).length;
        for (const { manifest, faults } of results) {
          expect(manifest === undefined).toBe(faults.length > 0);
          for (const { detail, message } of faults) {
            const { file, line, column } = detail.place ?? { file: "" };
            expect(message).toMatch(/^WF_MANIFEST_\w+ function\.yaml:[1-9]\d*:[1-9]\d*[ :][^\n]*$/);
            expect([file, line, column]).toEqual(["function.yaml", expect.any(Number), expect.any(Number)]);
            expect(line).toBeLessThanOrEqual(last);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
