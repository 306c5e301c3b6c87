import { readFileSync } from "node:fs";
import { z } from "zod";

const packageText = readFileSync(new URL("../package.json", import.meta.url), "utf8");

/** The version of this package. */
export const { version } = z.object({ version: z.string() }).parse(JSON.parse(packageText));
