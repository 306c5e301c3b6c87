import { writeFileSync } from "node:fs";
import { readme, readmeFile, refreshed } from "./sections.ts";

writeFileSync(readmeFile, refreshed(readme()));
