// npm run chart: generates the chart's values.schema.json, and the table in its README, from the comments of values.yaml, and the
// dashboard from the runtime's metrics.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dashboard } from "../dashboard/dashboard.ts";
import { refreshed } from "./readme.ts";
import { schemaOf } from "./schema.ts";
import { chart, readValues } from "./values.ts";

writeFileSync(join(chart, "files/dashboard.json"), `${JSON.stringify(await dashboard(), null, 2)}\n`);
const values = readValues();
const readme = join(chart, "README.md");
writeFileSync(join(chart, "values.schema.json"), `${JSON.stringify(schemaOf(values), null, 2)}\n`);
writeFileSync(readme, refreshed(readFileSync(readme, "utf8"), values));
