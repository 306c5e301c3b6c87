/** Words of a sentence; a piece of code and a link count as one. */
const longestAllowed = 25;

/** The sentences of a page's prose and of its tables' cells: without fenced code and HTML. */
const sentencesOf = (page: string): string[] =>
  withoutCode(page.replace(/^( *)```[\s\S]*?^\1```$/gm, ""))
    .replace(/^\s*#+ (.*)$/gm, "\n\n$1\n\n")
    .replace(/^\s*\|(.*)\|\s*$/gm, (_, cells: string) => `\n\n${cells.replaceAll(/(?<!\\)\|/g, "\n\n")}\n\n`)
    .replace(/^\s*(?:[-*]|\d+\.) /gm, "\n\n")
    .split(/\n\s*\n/)
    .flatMap(sentencesOfBlock);

const withoutCode = (text: string): string =>
  text
    .replace(/`[^`]*`/g, "code")
    .replace(/<!--[\s\S]*?-->|<\/?[a-z][^>]*>/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "link");

const sentencesOfBlock = (block: string): string[] =>
  block
    .replace(/\s+/g, " ")
    .trim()
    .split(/(?<=[.?!][*)"]*) |:$/);

const words = (sentence: string): number => sentence.split(" ").filter((word) => /\w/.test(word)).length;

/** The sentences of a page in Markdown that a reader would lose the thread of. */
export const tooLong = (page: string): string[] =>
  sentencesOf(page).filter((sentence) => words(sentence) > longestAllowed);

/** A program's comments, each as a page: a docstring's tags are paragraphs, and its indented lines are code. */
export const commentsOf = (source: string): string[] =>
  [
    ...[...source.matchAll(/^[ \t]*\/\*\*?([\s\S]*?)\*\//gm)].map(([, text = ""]) =>
      text.replace(/^[ \t]*\*( |$)/gm, ""),
    ),
    ...[...source.matchAll(/(?:^[ \t]*\/\/.*\n)+/gm)].map(([text]) => text.replace(/^[ \t]*\/\/ ?/gm, "")),
    ...[...source.matchAll(/\S[ \t]+\/\/ (.*)$/gm)].map(([, text = ""]) => text),
  ].map((text) => text.replace(/^(?: {2,}|\t).*$/gm, "").replace(/^\s*@\w+/gm, "\n\n"));
