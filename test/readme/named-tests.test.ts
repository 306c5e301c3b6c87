import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { read } from "./sections.ts";

const root = join(import.meta.dirname, "../..");
const threats = read("runtime/docs/threat-model.md");
const guarantees = ["guarantees", "guarantees-work", "guarantees-edits"].map((page) => read(`runtime/docs/${page}.md`));

/** The tests that pages name: the file below `test/`, and words of the test's name. */
const named = [threats, ...guarantees].flatMap((page) =>
  [...page.matchAll(/`([\w/.-]+\.test\.ts)`: ([^|)\n]+)/g)].map(([, file = "", law = ""]) => ({
    file,
    law: law.trim(),
  })),
);

it.each(named)("a page's promise is held by a test: $file, $law", ({ file, law }) => {
  const path = join(root, "test", file);
  expect(existsSync(path), path).toBe(true);
  // A law may consist of a suite's name and a test's name.
  expect(readFileSync(path, "utf8").toLowerCase()).toContain(law.toLowerCase());
});

it("every line of the threat model's tables names its test", () => {
  const lines = threats.split("\n").filter((line) => /^\| (?!---|tries to)/.test(line));
  expect(lines.length).toBeGreaterThan(20);
  for (const line of lines) expect(line).toMatch(/`[\w/.-]+\.test\.ts`: /);
});

it("every guarantee has an example, and names its test", () => {
  const sections = guarantees.flatMap((page) => page.split(/^## /m).slice(1));
  const promises = sections.filter((section) => !section.startsWith("What cannot be promised"));
  expect(promises).toHaveLength(sections.length - 1);
  expect(promises.length).toBeGreaterThan(15);
  for (const promise of promises) expect(promise).toMatch(/\n\*Example\.\* [\s\S]*\nHeld by `[\w/.-]+\.test\.ts`: /);
});
