import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mutants } from "./mutants.ts";

const root = join(import.meta.dirname, "../../..");

test("each mutant changes what stands in the code, once", () => {
  const lost = mutants.flatMap(({ fault, file, edits }) => {
    const code = readFileSync(join(root, file), "utf8");
    return edits.filter(([from]) => code.split(from).length !== 2).map(([from]) => `${fault}: ${from}`);
  });
  expect(lost).toEqual([]);
});

test("each test file that is to catch a mutant is there", () => {
  const files = mutants.map(({ caughtBy }) => caughtBy).filter((each) => each !== "fleet");
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});
