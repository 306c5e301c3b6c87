// npm run docs: regenerates the sections of the docs that are generated from code, and the schema of manifests.
import { writeFileSync } from "node:fs";
import { renderSchema, schemaFile } from "../../runtime/manifest/editor-schema.ts";
import { pages, refreshed } from "./sections.ts";

for (const name of Object.keys(pages) as (keyof typeof pages)[]) writeFileSync(pages[name], refreshed(name));
writeFileSync(schemaFile, renderSchema());
