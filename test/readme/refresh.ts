// npm run docs: makes anew what the docs say from code.
import { writeFileSync } from "node:fs";
import { pages, refreshed } from "./sections.ts";

for (const name of Object.keys(pages) as (keyof typeof pages)[]) writeFileSync(pages[name], refreshed(name));
