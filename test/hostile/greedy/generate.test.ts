import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkExpression } from "../../../runtime/engine/filter/check-expression.ts";
import { loadFunctions } from "../../../runtime/manifest/load.ts";
import { schemaPaths } from "../../laws/edits/schema-paths.ts";
import { folderOf } from "../../tools/folder.ts";
import { documentOf, filesOf, greedyOf } from "./generate.ts";
import { limitOf, listsOn, sizesOf } from "./limits.ts";

const seeds = Array.from({ length: 3 }, (_, seed) => seed);

test("ten greedy manifests push each field of the schema to its limit", () => {
  const sizes = greedyOf(1).map(({ spec }) => sizesOf(documentOf("greedy", spec)));
  const largest = (path: string) => Math.max(...sizes.map((each) => each.get(path) ?? Number.NEGATIVE_INFINITY));
  const short = [...new Set(schemaPaths().flatMap((path) => [path, ...listsOn(path)]))].filter(
    (path) =>
      !(largest(path) >= (limitOf(path) ?? Number.NEGATIVE_INFINITY)) || largest(path) === Number.NEGATIVE_INFINITY,
  );
  expect(short).toEqual([]);
});

test.each(seeds)("all of them are within the schema and its rules: seed %i", async (seed) => {
  const folder = folderOf({});
  for (const [name, files] of Object.entries(filesOf(greedyOf(seed)))) {
    mkdirSync(join(folder, name), { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, name, file), text);
  }
  const { rejected, faults, functions } = await loadFunctions(folder, { checkExpression });
  expect([...rejected.flatMap((each) => each.faults), ...faults].map(({ message }) => message.slice(0, 400))).toEqual(
    [],
  );
  expect(functions).toHaveLength(10);
});

test("the same seed makes the same manifests, and another one others", () => {
  expect(greedyOf(7)).toEqual(greedyOf(7));
  expect(greedyOf(7)).not.toEqual(greedyOf(8));
});
