// Whatever a value is set to: the chart renders, or says what is wrong and where. Never does a template stumble.
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readValues, type Value } from "../../deploy/values/values.ts";
import { render } from "./helm.ts";

type Path = readonly string[];

/** Every key of values.yaml, groups included, and the keys of the maps that are given whole. */
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

const folder = await mkdtemp(join(tmpdir(), "watchfire-odd-values-"));
let files = 0;

/** What helm says of these values, or undefined where it renders objects. */
async function complaint(values: object): Promise<string | undefined> {
  const file = join(folder, `${files++}.json`);
  await writeFile(file, JSON.stringify(values));
  try {
    for (const object of await render("--values", file)) {
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

/** The places that the schema refuses: `- at '/image': missing properties 'repository', 'pullPolicy'`. */
function refusedBySchema(said: string): Set<string> {
  const lines = [...said.matchAll(/^ *- at '(.*?)': (.+)$/gm)];
  return new Set(
    lines.flatMap(([, at = "", what = ""]) => {
      if (what === "validation failed") return []; // what is below it follows
      const missing = what.startsWith("missing propert") ? [...what.matchAll(/'(.+?)'/g)] : [];
      return missing.length > 0 ? missing.map(([, name]) => `${at}/${name}`) : [at];
    }),
  );
}

test.each([
  ["null", null],
  ["a number", 7],
  ["a text", "some-text"],
  ["an empty text", ""],
  ["a list", ["some-text"]],
  ["an empty list", []],
  ["a map", { some: "text" }],
  ["true", true],
])("a value that is %s is taken, or refused by its name", async (_, odd) => {
  // The schema names all that it refuses at once; keys of one depth do not hide one another.
  const depths = Map.groupBy(paths, (path) => path.length);
  const taken: Path[] = [];
  for (const alike of depths.values()) {
    const said = (await complaint(alike.map((path) => nested(path, odd)).reduce(merged))) ?? "";
    const refused = [...refusedBySchema(said)];
    for (const path of alike) {
      const own = `/${path.join("/")}`;
      if (!refused.some((at) => at === own || at.startsWith(`${own}/`))) taken.push(path);
    }
  }
  expect(taken.length).toBeLessThan(paths.length);
  for (const path of taken) {
    const said = await complaint(nested(path, odd));
    if (said === undefined) continue;
    expect(said).toMatch(/^Error: execution error at \(watchfire\/templates\/\w+\.yaml:\d+:\d+\): \w/);
    expect(said).toContain(path.slice(0, 2).join("."));
  }
});
