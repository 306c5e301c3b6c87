import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const isOurs = (file: string) => !/(^|\/)(node_modules|\.packages|\.image|\.watchfire)(\/|$)/.test(file);
const sources = globSync("{runtime,sdk,deploy,test,functions}/**/*.{ts,js}", { cwd: root }).filter(isOurs);

/** Pages that are no design notes: those for users, texts of packages, and texts that tests and templates use. */
const isOther = /(^|\/)(README|CHANGELOG)\.md$|^runtime\/docs\/|\/templates\/|\/fixtures\//;

/** Every design note: `DESIGN.md` of a room, and further notes next to it. */
const notes = globSync("{runtime,sdk,deploy,test}/**/*.md", { cwd: root }).filter(
  (file) => isOurs(file) && !isOther.test(file),
);

const textOf = (note: string): string => readFileSync(join(root, note), "utf8");

/** Folders that exist only in a package, or in Helm. */
const elsewhere = ["dist/", "src/", "crds/"];

/** Files and folders that a note names. `./x.ts` and `.d.ts` are examples of a form. */
const namedIn = (note: string): string[] =>
  [...textOf(note).matchAll(/`(\w[\w./-]*(?:\.ts|\/))`/g)]
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

/** Fenced and indented blocks of a note. */
const blocksOf = (text: string): string[] => text.match(/^```[\s\S]*?^```|(?:^ {4}.*\n)+/gm) ?? [];

it.each(notes)("every file that a design note names exists: %s", (note) => {
  expect(namedIn(note).filter((path) => !isThere(note, path))).toEqual([]);
});

it.each(notes)(
  "a design note says its purpose first, shows a picture and an example, and ends with operation: %s",
  (note) => {
    const text = textOf(note);
    const lines = text.trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(150);
    const [title = "", purpose = ""] = lines.filter((line) => line !== "");
    expect(title).toMatch(/^# /);
    expect(purpose, "the first line after the title is a sentence that says what the room is for").toMatch(/^[\w`[*]/);
    expect(
      blocksOf(text).some((block) => /[─→▶▲▼◀←⇄]/.test(block)),
      "a picture of lines and arrows",
    ).toBe(true);
    expect(text, "an example").toMatch(/^## Example|^```(?:ts|yaml|console)?$/m);
    expect(text).toMatch(/^## Decisions$/m);
    expect(text).toMatch(/^## Operational considerations$/m);
  },
);

it("every room of the runtime has a design note", () => {
  const rooms = globSync("runtime/*/", { cwd: root })
    .filter(isOurs)
    .filter((room) => sources.filter((file) => file.startsWith(`${room}/`) && file.endsWith(".ts")).length > 5);
  expect(rooms.length).toBeGreaterThan(20);
  expect(rooms.filter((room) => !notes.includes(`${room}/DESIGN.md`))).toEqual([]);
});
