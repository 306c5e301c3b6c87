import { globSync } from "node:fs";
import { resolve } from "node:path";
import { read } from "./sections.ts";

/** A fenced piece of a page. */
export interface Block {
  readonly page: string;
  readonly language: string;
  readonly text: string;
}

/** Every page for users. */
export const userPages: readonly string[] = [
  "README.md",
  ...globSync(["runtime/docs/*.md", "{sdk,runtime,runtime/cluster,deploy/create,deploy/chart}/README.md"], {
    cwd: resolve(import.meta.dirname, "../.."),
  }),
];

export const blocks: readonly Block[] = userPages.flatMap((page) =>
  [...read(page).matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", text = ""]) => ({
    page,
    language,
    text,
  })),
);

/** The commands in a page's consoles, without the comments after `#`. */
export const commandsOf = (page: string): string[] =>
  blocks
    .filter((block) => block.page === page && block.language === "console")
    .flatMap(({ text }) => [...text.matchAll(/^\$ (.+?)(?: {2,}#.*)?$/gm)].map(([, command = ""]) => command));
