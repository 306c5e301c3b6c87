// npm run tells: writes lower counts of hard turns of phrase to tells.json, and refuses higher ones.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { read } from "./sections.ts";
import { countTells } from "./tells.ts";

const file = "test/readme/tells.json";
const before: Readonly<Record<string, number>> = JSON.parse(read(file));
const counts = countTells();
const risen = Object.entries(counts).filter(([room, count]) => count > (before[room] ?? 0));
for (const [room, count] of risen) process.stderr.write(`${room}: ${count}, at most ${before[room] ?? 0}\n`);
if (risen.length > 0) process.exitCode = 1;
else writeFileSync(join(import.meta.dirname, "../..", file), `${JSON.stringify(counts, null, 2)}\n`);
