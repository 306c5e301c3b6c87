import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const isOurs = (file: string) => !/(^|\/)(node_modules|\.packages|\.image)(\/|$)/.test(file);
const notes = globSync("{runtime,sdk,deploy,test}/**/DESIGN.md", { cwd: root }).filter(isOurs);
const sources = globSync("{runtime,sdk,deploy,test,functions}/**/*.{ts,js}", { cwd: root }).filter(isOurs);

/** Folders that exist only in a package, or in Helm. */
const elsewhere = ["dist/", "src/", "crds/"];

/** Files and folders that a note names. `./x.ts` and `.d.ts` are examples of a form. */
const namedIn = (note: string): string[] =>
  [...readFileSync(join(root, note), "utf8").matchAll(/`(\w[\w./-]*(?:\.ts|\/))`/g)]
    .map(([, path = ""]) => path)
    .filter((path) => !elsewhere.includes(path));

/**
 * True if the path exists. It is relative to the note's folder, to the runtime or to the checkout; a bare name may be deeper in
 * the note's folder.
 */
const isThere = (note: string, path: string): boolean => {
  const folder = dirname(note);
  const isBelow = (file: string) => file.startsWith(`${folder}/`) && basename(file) === path;
  return [folder, "runtime", "."].some((start) => existsSync(join(root, start, path))) || sources.some(isBelow);
};

it.each(notes)("every file that a design note names exists: %s", (note) => {
  expect(namedIn(note).filter((path) => !isThere(note, path))).toEqual([]);
});
