import { globSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { read } from "./sections.ts";
import { tooLong } from "./sentences.ts";

const root = resolve(import.meta.dirname, "../..");

/** Not ours: packages, and copies that builds make. A CHANGELOG is put together of `.changeset/*.md`, which are held themselves. */
const isNotWritten = /(^|\/)(node_modules|\.packages|\.image|\.watchfire|CHANGELOG\.md)(\/|$)/;

/** Every page, note and README. A pattern with `*` sees no folder that begins with a dot. */
const documents = ["**/*.md", ".changeset/*.md", ".github/**/*.md"]
  .flatMap((pattern) => globSync(pattern, { cwd: root, exclude: (name) => isNotWritten.test(name) }))
  .filter((file) => !isNotWritten.test(file));

it.each(documents)("no sentence is longer than 25 words: %s", (file) => {
  expect(tooLong(read(file))).toEqual([]);
});
