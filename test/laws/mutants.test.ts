import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { edits } from "./edits/fields.ts";
import { mutants as editMutants } from "./edits/mutants.ts";
import { mutants as fleetMutants } from "./fleet/mutants.ts";
import { isWorldKind } from "./mutant.ts";

const root = join(import.meta.dirname, "../..");
const mutants = [...fleetMutants, ...editMutants];

test("each mutant changes what stands in the code, once", () => {
  const lost = mutants.flatMap(({ fault, file, edits }) => {
    const code = readFileSync(join(root, file), "utf8");
    return edits.filter(([from]) => code.split(from).length !== 2).map(([from]) => `${fault}: ${from}`);
  });
  expect(lost).toEqual([]);
});

test("each test file that is to catch a mutant is there", () => {
  const files = mutants.map(({ caughtBy }) => caughtBy).filter((each) => !isWorldKind(each));
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

test("each edit that a mutant's worlds may have is one", () => {
  const names = new Set(edits.map(({ name }) => name));
  const asked = mutants.flatMap(({ within }) => within?.edits ?? []);
  expect(asked.filter((name) => !names.has(name))).toEqual([]);
});
