// Runs worlds until one breaks a law, and prints the seed and the law.
// Arguments: the kind of worlds, and the maximum number of worlds. Worlds with edits also take the law that counts, and the edits
// that they may have, joined by commas. Exit status: 1 if a law was broken, 0 if not, 2 if a world crashed, which says nothing
// about a law.
import { laws } from "./edits/law-names.ts";
import { planOf } from "./edits/plan.ts";
import { runPlan, wordsOf } from "./edits/world.ts";
import { runFleet } from "./fleet/world.ts";

const [kind, count, law, edits] = process.argv.slice(2);

const runs: Readonly<Record<string, (seed: number) => Promise<readonly string[]>>> = {
  fleet: async (seed) => (await runFleet(seed)).broken,
  async edits(seed) {
    const { broken } = await runPlan(planOf(seed, edits?.split(",")));
    return broken.filter((breach) => law === undefined || breach.law === law).map(wordsOf);
  },
};

const run = runs[kind ?? ""];
if (!run || (law !== undefined && !(law in laws))) throw new Error(`no such worlds: ${kind} ${law}`);
for (let seed = 1; seed <= Number(count); seed++) {
  process.stderr.write(".");
  try {
    const [broken] = await run(seed);
    if (broken === undefined) continue;
    process.stdout.write(`SEED=${seed} ${broken}\n`);
    process.exit(1);
  } catch (error) {
    process.stderr.write(`SEED=${seed} did not come to its end: ${error}\n`);
    process.exit(2);
  }
}
process.exit(0);
