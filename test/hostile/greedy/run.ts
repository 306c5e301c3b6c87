// npm run greedy: what an innocent function feels of greedy ones beside it. Arguments: names of kinds; none for all. SECONDS: 15.
import { kinds } from "./kinds.ts";
import { type Felt, feltBeside } from "./neighbours.ts";

const seconds = Number(process.env.SECONDS ?? 15);
const names = process.argv.slice(2);
const row = (name: string, { changes, told, p50, p99, livez, memory }: Felt) =>
  `| ${name} | ${told} of ${changes} | ${p50} | ${p99} | ${livez.toFixed(0)} | ${(memory / 2 ** 20).toFixed(0)} |\n`;
process.stdout.write(
  "| beside | told | p50 ms | p99 ms | /livez ms | memory MB |\n| --- | --- | --- | --- | --- | --- |\n",
);
process.stdout.write(row("nobody", await feltBeside({}, seconds)));
for (const [name, others] of Object.entries(kinds)) {
  if (names.length > 0 && !names.includes(name)) continue;
  const felt = await feltBeside(others, seconds);
  process.stdout.write(row(name, felt));
  if (process.env.VERBOSE)
    process.stdout.write(
      `${felt.metrics
        .split("\n")
        .filter((line) => /parent_seconds|function_ready|status_reason/.test(line))
        .join("\n")}\n`,
    );
}
