// npm run docs: regenerates the sections of the docs that are generated from code.
import { writeFileSync } from "node:fs";
import { pages, refreshed } from "./sections.ts";

for (const name of Object.keys(pages) as (keyof typeof pages)[]) writeFileSync(pages[name], refreshed(name));
