import { globSync } from "node:fs";
import { resolve } from "node:path";
import { userPages } from "./blocks.ts";
import { read } from "./sections.ts";

const root = resolve(import.meta.dirname, "../..");

/** Phrases that make a text hard to read, each as a pattern for one sentence. */
const tells: readonly RegExp[] = [
  /^(?:What|Who|Whom|Of|Where|That which)\b(?!.*\?)/,
  /^Gives\b/,
  /\btold\b/,
  /\bnone\b(?=.* )|(?<= .*)\bnone\b/,
  /\banew\b/,
  /\bof its own\b/,
  /\bas it was\b/,
  /\b(?:comes|came|come) to\b/,
  /\bbeside\b/,
  /\bso that\b.*\bso that\b/,
  /\b(?:mend(?:s|ed|ing)?|wardens?|tenants?|bystanders?|aftermath|fates?|errands?|spoilt|desks?)\b/,
  /\b(?:lets? go of|goes on|went on|in doubt|brought down)\b/,
  /^(?:Hears|Tells) of\b/,
];

/** Further phrases that make a message hard to read. A message is part of a sentence, so it has no beginnings to look at. */
const messageTells: readonly RegExp[] = [
  ...tells.filter((tell) => !tell.source.startsWith("^")),
  /(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b)/,
  /\bpositions?\b(?! of the bundle)/,
  /\bgo on\b/,
  /\bas it is\b/,
  /\bof (?:your|their) own\b/,
];

/** Packages, copies that builds create, and changelogs, which are generated from `.changeset/*.md`. */
const isNotWritten = /(^|\/)(node_modules|\.packages|\.image|\.watchfire|CHANGELOG\.md)(\/|$)/;

/** These types contain Kubernetes' own comments. */
const isKubernetes = /^sdk\/kubernetes\/types\.ts$/;

/** The matching files. A pattern with `*` does not match a folder that begins with a dot. */
const filesOf = (...patterns: string[]): string[] =>
  patterns
    .flatMap((pattern) => globSync(pattern, { cwd: root, exclude: (name) => isNotWritten.test(name) }))
    .filter((file) => !isNotWritten.test(file) && !isKubernetes.test(file));

/** The sentences of a page's prose and of its tables' cells, without fenced code and HTML. */
const sentencesOf = (page: string): string[] =>
  withoutCode(page.replace(/^( *)```[\s\S]*?^\1```$/gm, ""))
    .replace(/^\s*#+ (.*)$/gm, "\n\n$1\n\n")
    .replace(/^\s*\|(.*)\|\s*$/gm, (_, cells: string) => `\n\n${cells.replaceAll(/(?<!\\)\|/g, "\n\n")}\n\n`)
    .replace(/^\s*(?:[-*]|\d+\.) /gm, "\n\n")
    .split(/\n\s*\n/)
    .flatMap((block) =>
      block
        .replace(/\s+/g, " ")
        .trim()
        .split(/(?<=[.?!][*)"]*) |:$/),
    )
    .map((sentence) => sentence.replace(/^[*_]+/, ""));

const withoutCode = (text: string): string =>
  text
    .replace(/`[^`]*`/g, "code")
    .replace(/<!--[\s\S]*?-->|<\/?[a-z][^>]*>/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");

/** A program's comments, each as a page. The tags of a docstring begin paragraphs, and its indented lines are code. */
const commentsOf = (source: string): string[] =>
  [
    ...[...source.matchAll(/^[ \t]*\/\*\*?([\s\S]*?)\*\//gm)].map(([, text = ""]) =>
      text.replace(/^[ \t]*\*( |$)/gm, ""),
    ),
    ...[...source.matchAll(/(?:^[ \t]*\/\/.*\n)+/gm)].map(([text]) => text.replace(/^[ \t]*\/\/ ?/gm, "")),
    ...[...source.matchAll(/\S[ \t]+\/\/ (.*)$/gm)].map(([, text = ""]) => text),
  ].map((text) => text.replace(/^(?: {2,}|\t).*$/gm, "").replace(/^\s*@\w+/gm, "\n\n"));

/** Sections that `npm run docs` and `npm run chart` generate from texts in code. */
const generated = /<!-- (\w+) -->[\s\S]*?<!-- \/\1 -->/g;

/** Rooms whose texts imitate Kubernetes, or that have no texts for users. */
const hasNoMessages = /^runtime\/(?:cluster|cel|v8|bin|docs)\/|\.guest\.ts$|\/templates\//;

/** The texts of a program that are at least three words, without the values that are put into them. Joined words and SQL are no texts. */
const messagesOf = (source: string): string[] =>
  [
    ...source
      .replace(/\/\*[\s\S]*?\*\//g, "")
      .replace(/^\s*\/\/.*$/gm, "")
      .matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g),
  ]
    .map(([, quoted, template]) =>
      (quoted ?? template ?? "").replace(/\$\{[^}]*\}/g, "value").replace(/\\`[^`]*\\`/g, "code"),
    )
    .filter(
      (text) =>
        /[a-z]+ [a-z]+ [a-z]+/.test(text) &&
        !/\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|FROM|WHERE)\b|=>/.test(text),
    );

/** Messages, hints, log lines and help with such a phrase, each with its file. */
export const tellsOfMessages = (): string[] =>
  filesOf("{runtime,sdk}/**/*.{ts,tsx}")
    .filter((file) => !hasNoMessages.test(file))
    .flatMap((file) =>
      messagesOf(read(file))
        .filter((text) => messageTells.some((tell) => tell.test(text)))
        .map((text) => `${file}: ${text}`),
    );

/** The name of a test that a page cites for a promise; its wording is the test's. */
const cited = /`[\w/.-]+\.test\.ts`: [^|)\n]+/g;

/** The sentences of a Markdown text that match a pattern, once per match. */
export const tellsIn = (page: string): string[] =>
  sentencesOf(page).flatMap((sentence) => tells.filter((tell) => tell.test(sentence)).map(() => sentence));

const tellsOfSource = (file: string): string[] => commentsOf(read(file)).flatMap(tellsIn);

/** Sentences with such a phrase in hand-written pages, each with its page. */
export const tellsOfPages = (): string[] =>
  filesOf(...userPages, ".github/**/*.md", ".changeset/*.md").flatMap((file) =>
    tellsIn(read(file).replace(generated, "").replace(cited, "")).map((sentence) => `${file}: ${sentence}`),
  );

const tellsOfGenerated = (): number =>
  userPages.flatMap((page) => [...read(page).matchAll(generated)].flatMap(([text]) => tellsIn(text))).length;

/** The room of a file: a folder of the runtime, or a top-level folder. */
const roomOf = (file: string): string => /^(?:runtime\/[^/]+(?=\/)|[^/]+)/.exec(file)?.[0] ?? file;

/** Counts of such phrases by room (comments and notes), in the pages, and in the pages' generated sections. */
export function countTells(): Record<string, number> {
  const counts = new Map<string, number>([
    ["generated sections", tellsOfGenerated()],
    ["pages", tellsOfPages().length],
  ]);
  const add = (file: string, found: readonly string[]) =>
    counts.set(roomOf(file), (counts.get(roomOf(file)) ?? 0) + found.length);
  for (const file of filesOf("{runtime,sdk,deploy,functions,test}/**/*.{ts,js}")) add(file, tellsOfSource(file));
  for (const file of filesOf("{runtime,sdk,deploy,functions,test}/**/*.md"))
    if (!userPages.includes(file)) add(file, tellsIn(read(file)));
  return Object.fromEntries(
    [...counts].filter(([, count]) => count > 0).sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}
