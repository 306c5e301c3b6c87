// npm run greedy: measures the effect of greedy functions on an innocent one in the same runtime, on an otherwise idle machine.
// Arguments: names of kinds; default all. SECONDS: duration of each measurement, default 15. SEED: seed of the generated
// manifests, random by default. Exit status 1 if the promise is broken.
import { chartDefaults } from "../../readme/bounds/table.ts";
import { kinds, seed } from "./kinds.ts";
import { type Felt, feltBeside } from "./neighbours.ts";

const seconds = Number(process.env.SECONDS ?? 15);
/**
 * Limit of an innocent's p99: a multiple of its value without the others, or a number of milliseconds, whichever is more.
 */
const multiple = 5;
const promptMs = 250;
const livezMs = 100;

const names = process.argv.slice(2);
const print = (name: string, { changes, told, p50, p99, livez, memory, disk }: Felt, kept: string) =>
  process.stdout.write(
    `| ${name} | ${told} of ${changes} | ${p50} | ${p99} | ${livez.toFixed(0)} | ${(memory / 2 ** 20).toFixed(0)} | ${(disk / 2 ** 20).toFixed(0)} | ${kept} |\n`,
  );
process.stdout.write(`seed ${seed}: SEED=${seed} makes the generated manifests again\n\n`);
process.stdout.write("| beside | told | p50 ms | p99 ms | /livez ms | memory MB | disk MB | kept |\n");
process.stdout.write("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
const alone = await feltBeside({ functions: {} }, seconds);
print("nobody", alone, "");
let broken = 0;
for (const [name, others] of Object.entries(kinds)) {
  if (names.length > 0 && !names.includes(name)) continue;
  const felt = await feltBeside(others, seconds);
  const isPrompt = felt.p99 <= Math.max(promptMs, multiple * alone.p99);
  const isLive = felt.livez <= Math.max(livezMs, multiple * alone.livez);
  const fits = felt.memory <= chartDefaults.memory && felt.disk <= chartDefaults.volume;
  const isKept = felt.told >= felt.changes && isPrompt && isLive && fits;
  if (!isKept) broken++;
  print(name, felt, isKept ? "yes" : "NO");
}
process.exit(broken === 0 ? 0 : 1);
