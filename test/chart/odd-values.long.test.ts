// For any value, the chart either renders or reports the fault with its place. No template fails by itself.
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readValues, type Value } from "../../deploy/values/values.ts";
import { render } from "./helm.ts";

type Path = readonly string[];

/** Every key of values.yaml, including groups, and the keys of maps that are used whole. */
const paths: readonly Path[] = readValues().flatMap((value) => pathsOf(value, []));

function pathsOf({ name, children, default: value }: Value, above: Path): Path[] {
  const path = [...above, name];
  const inner = children ? children.flatMap((child) => pathsOf(child, path)) : keysOf(value, path);
  return [path, ...inner];
}

function keysOf(value: unknown, path: Path): Path[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, child]) => [[...path, key], ...keysOf(child, [...path, key])]);
}

const nested = (path: Path, value: unknown): object =>
  path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as object;

function merged(left: object, right: object): object {
  const both: Record<string, unknown> = { ...left };
  for (const [key, value] of Object.entries(right))
    both[key] = key in both ? merged(both[key] as object, value) : value;
  return both;
}

/** Enables everything, so that every template is rendered. */
const everything = {
  replicas: 2,
  functions: { source: "oci", oci: { reference: "registry.example.com/functions:1" } },
  functionStatus: { enabled: true },
  crds: { enabled: true },
  networkPolicy: { enabled: true },
  serviceMonitor: { enabled: true, renderMode: "alwaysRender" },
  prometheusRule: { enabled: true, renderMode: "alwaysRender" },
};

const folder = await mkdtemp(join(tmpdir(), "watchfire-odd-values-"));
const base = join(folder, "everything.json");
await writeFile(base, JSON.stringify(everything));
let files = 0;

const together = (alike: readonly Path[], odd: unknown): object =>
  alike.map((path) => nested(path, odd)).reduce(merged, {});

/** Helm's error for these values; `undefined` if it renders objects. */
async function complaint(values: object): Promise<string | undefined> {
  const file = join(folder, `${files++}.json`);
  await writeFile(file, JSON.stringify(values));
  try {
    for (const object of await render("--values", base, "--values", file)) {
      expect(object, JSON.stringify(values)).toMatchObject({
        apiVersion: expect.any(String),
        kind: expect.any(String),
        metadata: { name: expect.any(String) },
      });
      expect(JSON.stringify(object), JSON.stringify(values)).not.toMatch(/%!|<nil>|map\[|:null/);
    }
    return undefined;
  } catch (error) {
    if (error instanceof Error && "stderr" in error) return String(error.stderr);
    throw error;
  }
}

/** Tries all paths at once. If helm fails, tries each half, down to the one path that helm must name. */
async function expectRendered(alike: readonly Path[], odd: unknown): Promise<void> {
  if (alike.length === 0) return;
  const said = await complaint(together(alike, odd));
  if (said === undefined) return;
  if (alike.length > 1) {
    const half = Math.ceil(alike.length / 2);
    await expectRendered(alike.slice(0, half), odd);
    return expectRendered(alike.slice(half), odd);
  }
  expect(said).toMatch(/^Error: execution error at \(watchfire\/templates\/\w+\.yaml:\d+:\d+\): \w/);
  expect(said).toContain(alike[0]?.slice(0, 2).join("."));
}

/** The paths that the schema refuses: `- at '/image': missing properties 'repository', 'pullPolicy'`. */
function refusedBySchema(said: string): Set<string> {
  const lines = [...said.matchAll(/^ *- at '(.*?)': (.+)$/gm)];
  return new Set(
    lines.flatMap(([, at = "", what = ""]) => {
      if (what === "validation failed") return []; // its children are listed after it
      const missing = what.startsWith("missing propert") ? [...what.matchAll(/'(.+?)'/g)] : [];
      return missing.length > 0 ? missing.map(([, name]) => `${at}/${name}`) : [at];
    }),
  );
}

test.each([
  ["null", null],
  ["a number", 7],
  ["a large number", 20_261_121],
  ["a fraction", 0.5],
  ["a text", "some-text"],
  ["an empty text", ""],
  ["a list", ["some-text"]],
  ["an empty list", []],
  ["a map", { some: "text" }],
  ["true", true],
])("a value that is %s is taken, or refused by its name", async (_, odd) => {
  // The schema reports all faults at once; keys of the same depth do not hide one another.
  const depths = Map.groupBy(paths, (path) => path.length);
  const taken: Path[] = [];
  for (const alike of depths.values()) {
    const said = (await complaint(together(alike, odd))) ?? "";
    const refused = [...refusedBySchema(said)];
    const left = alike.filter((path) => {
      const own = `/${path.join("/")}`;
      return !refused.some((at) => at === own || at.startsWith(`${own}/`));
    });
    await expectRendered(left, odd);
    taken.push(...left);
  }
  expect(taken.length).toBeLessThan(paths.length);
});
