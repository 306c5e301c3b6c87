// Runs worlds until one breaks a law. Argument: how many at most. Prints the seed and the law, and ends with 1; or with 0.
import { runFleet } from "./world.ts";

const count = Number(process.argv[2]);
for (let seed = 1; seed <= count; seed++) {
  process.stderr.write(".");
  const [law] = await runFleet(seed).then(
    ({ broken }) => broken,
    (error: unknown) => [String(error)],
  );
  if (law === undefined) continue;
  process.stdout.write(`SEED=${seed} ${law}\n`);
  process.exit(1);
}
