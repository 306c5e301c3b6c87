import { globSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { read } from "./sections.ts";

const root = resolve(import.meta.dirname, "../..");

const documents = [
  "README.md",
  "test/README.md",
  ...globSync("runtime/docs/*.md", { cwd: root }),
  ...["", "watch/", "dispatch/", "sandbox/"].map((room) => `runtime/${room}DESIGN.md`),
];

/** Words; a piece of code and a link count as one. */
const longest = 25;

/** The sentences of a page's prose: without code, tables, headings, and the lists of tests that hold a promise. */
function sentences(page: string): string[] {
  const prose = page
    .replace(/```[\s\S]*?```|<[^>]*>/g, "")
    .replace(/^\s*(?:\||#).*$/gm, "\n")
    .replace(/^\s*(?:[-*]|\d+\.) /gm, "\n\n")
    .replace(/`[^`]*`/g, "code")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "link");
  return prose
    .split(/\n\s*\n/)
    .flatMap((block) => block.replace(/\s+/g, " ").split(/(?<=[.?!][*)"]*) |:\s*$/))
    .filter((sentence) => !sentence.trim().startsWith("Held by "));
}

const wordsOf = (sentence: string): number => sentence.split(" ").filter((word) => /\w/.test(word)).length;

it.each(documents)("no sentence is longer than 25 words: %s", (file) => {
  expect(sentences(read(file)).filter((sentence) => wordsOf(sentence) > longest)).toEqual([]);
});
