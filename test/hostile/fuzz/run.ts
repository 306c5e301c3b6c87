// npm run fuzz -- --minutes 10 --seed 1: lets executors send random frames for the given time. Prints the seed first, so that a
// run can be repeated. Exit status 1 if a violation got through, or if the parent was blocked for long. In ten minutes on two
// cores with twenty busy processes, the longest block was 74 ms of CPU time once, including this program's own work, which reads
// each frame as well.
import { parseArgs } from "node:util";
import { fuzz } from "./fuzz.ts";

const longestPauseMs = 200;
const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" }, seed: { type: "string" } } });
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
process.stdout.write(`seed ${seed}, ${values.minutes} minutes\n`);
const { breaches, ...report } = await fuzz(Number(values.minutes) * 60_000, seed);
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
for (const breach of breaches.slice(0, 20)) process.stdout.write(`GOT THROUGH: ${breach}\n`);
process.stdout.write(`got through: ${breaches.length}\n`);
process.exitCode = breaches.length > 0 || report.longestPauseMs > longestPauseMs ? 1 : 0;
