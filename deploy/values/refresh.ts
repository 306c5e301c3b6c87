// npm run chart: generates the chart's values.schema.json, and the table in its README, from the comments of values.yaml.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { refreshed } from "./readme.ts";
import { schemaOf } from "./schema.ts";
import { chart, readValues } from "./values.ts";

const values = readValues();
const readme = join(chart, "README.md");
writeFileSync(join(chart, "values.schema.json"), `${JSON.stringify(schemaOf(values), null, 2)}\n`);
writeFileSync(readme, refreshed(readFileSync(readme, "utf8"), values));
