import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { bin } from "./run.ts";

test("the program's first line begins with node: pnpm takes its first word for what is to be run", () => {
  expect(readFileSync(bin, "utf8").split("\n", 1)[0]).toMatch(/^#!\/usr\/bin\/env -S node --/);
});
