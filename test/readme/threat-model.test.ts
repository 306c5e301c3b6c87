import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "runtime/docs/threat-model.md"), "utf8");

/** Each test that the page names: its file below `test/`, and words of its law. */
const named = [...page.matchAll(/`([\w/-]+\.test\.ts)`: ([^|)\n]+)/g)].map(([, file = "", law = ""]) => ({
  file,
  law: law.trim(),
}));

it.each(named)("the threat model's line is held by a test: $file, $law", ({ file, law }) => {
  const path = join(root, "test", file);
  expect(existsSync(path), path).toBe(true);
  // A law may be put together of a suite's name and a test's.
  expect(readFileSync(path, "utf8").toLowerCase()).toContain(law.toLowerCase());
});

it("every line of the threat model's tables names its test", () => {
  const lines = page.split("\n").filter((line) => /^\| (?!---|tries to)/.test(line));
  expect(lines.length).toBeGreaterThan(20);
  for (const line of lines) expect(line).toMatch(/`[\w/-]+\.test\.ts`: /);
});
