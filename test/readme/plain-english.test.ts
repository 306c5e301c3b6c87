import { globSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { read } from "./sections.ts";
import { commentsOf, tooLong } from "./sentences.ts";

const root = resolve(import.meta.dirname, "../..");

/** Not ours: packages, and copies that builds make. A CHANGELOG is put together of `.changeset/*.md`, which are held themselves. */
const isNotWritten = /(^|\/)(node_modules|\.packages|\.image|\.watchfire|CHANGELOG\.md)(\/|$)/;

/** Kubernetes' own words stand in its types. */
const isKubernetes = /^sdk\/kubernetes\/types\.ts$/;

const filesOf = (...patterns: string[]): string[] =>
  patterns
    .flatMap((pattern) => globSync(pattern, { cwd: root, exclude: (name) => isNotWritten.test(name) }))
    .filter((file) => !isNotWritten.test(file));

/** Every page, note and README. A pattern with `*` sees no folder that begins with a dot. */
const documents = filesOf("**/*.md", ".changeset/*.md", ".github/**/*.md");

it.each(documents)("no sentence is longer than 25 words: %s", (file) => {
  expect(tooLong(read(file))).toEqual([]);
});

it.each(["runtime", "sdk", "deploy", "functions", "test"])(
  "no comment's sentence is longer than 25 words in %s",
  (folder) => {
    const files = filesOf(`${folder}/**/*.{ts,js}`).filter((file) => !isKubernetes.test(file));
    expect(files.length).toBeGreaterThan(5);
    const long = files.flatMap((file) =>
      commentsOf(read(file)).flatMap((comment) => tooLong(comment).map((text) => `${file}: ${text}`)),
    );
    expect(long).toEqual([]);
  },
);
