// Mutation test of the laws. Puts the faults of `fleet/mutants.ts` and `edits/mutants.ts` back, one at a time, in a copy of the
// tree, and runs the check that must catch each one: worlds until one breaks a law, or a test file. Each check must first pass in
// the
// unchanged copy, over the same seeds. A fault counts as caught only if a broken law is named with its seed, or a test failed. A
// crash or a time-out proves nothing. Ends with a table of the faults, each with the seed or the tests that failed.
// Arguments: words of the faults to try; without arguments, all. SEEDS: how many worlds to try, default 600. WORLDS: only this
// kind
// of worlds.
import { spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mutants as editMutants } from "./edits/mutants.ts";
import { mutants as fleetMutants } from "./fleet/mutants.ts";
import { isWorldKind, type Mutant } from "./mutant.ts";
import { namedFailure } from "./named-failure.ts";

const root = join(import.meta.dirname, "../..");
const { SEEDS = "600", WORLDS } = process.env;
const seeds = Number(SEEDS);
/** A check that prints nothing for this long counts as hanging, in milliseconds. */
const silentMs = 180_000;

const words = process.argv.slice(2);
const lists: Readonly<Record<string, readonly Mutant[]>> = { fleet: fleetMutants, edits: editMutants };
const all = Object.entries(lists).flatMap(([name, list]) => (WORLDS === undefined || WORLDS === name ? list : []));
const chosen = all.filter(({ fault }) => words.every((word) => fault.includes(word)));
const copy = mkdtempSync(join(tmpdir(), "watchfire-mutants-"));
/** Vitest's report of a test file, in JSON. */
const report = join(copy, "report.json");
const files = ["package.json", "tsconfig.json", "vitest.config.ts"];
/** Whether each check passes on healthy code, by its command. */
const healthy = new Map<string, boolean>();
// Executors run as separate users, who must be able to read the copy.
chmodSync(copy, 0o755);
try {
  // The packages are copied too, because an executor may only read those of the tree it runs in.
  for (const name of ["node_modules", "runtime", "test", "sdk", "functions", "deploy", ...files]) {
    cpSync(join(root, name), join(copy, name), { recursive: true, verbatimSymlinks: true });
  }
  const rows: string[] = [];
  let missed = 0;
  for (const [index, mutant] of chosen.entries()) {
    const began = performance.now();
    const caughtBy = await verdict(mutant);
    if (caughtBy === undefined) missed++;
    const seconds = Math.round((performance.now() - began) / 1000);
    process.stderr.write(`${index + 1} of ${chosen.length}, ${seconds} s: ${mutant.fault}\n`);
    rows.push(`| ${mutant.fault} | \`${mutant.file}\` | ${caughtBy ?? "NOT CAUGHT"} |`);
  }
  process.stdout.write(`| fault | put back in | caught by |\n| --- | --- | --- |\n${rows.join("\n")}\n`);
  process.stdout.write(`${chosen.length - missed} of ${chosen.length} faults are caught\n`);
  process.exitCode = missed === 0 ? 0 : 1;
} finally {
  rmSync(copy, { recursive: true, force: true });
}

/** The broken law with its seed, or the failed tests; `undefined` if nothing is named. */
async function verdict(mutant: Mutant): Promise<string | undefined> {
  const args = commandOf(mutant);
  if (!(await passes(args))) return undefined;
  const { file, edits, caughtBy } = mutant;
  const at = join(copy, file);
  const before = readFileSync(at, "utf8");
  writeFileSync(
    at,
    edits.reduce((text, [from, to]) => text.replace(from, () => to), before),
  );
  rmSync(report, { force: true });
  const ended = await run(args);
  writeFileSync(at, before);
  const output = !isWorldKind(caughtBy) && existsSync(report) ? readFileSync(report, "utf8") : ended.output;
  const named = namedFailure(caughtBy, { ...ended, output });
  if (named === undefined && ended.code !== 0) process.stderr.write(`it fails, and names no law: ${endOf(ended)}\n`);
  return named;
}

/** True if the check passes on healthy code. */
async function passes(args: readonly string[]): Promise<boolean> {
  const name = args.slice(1).join(" ");
  const known = healthy.get(name);
  if (known !== undefined) return known;
  const ended = await run(args);
  const passed = ended.code === 0;
  if (!passed) process.stderr.write(`${name} fails on healthy code, and proves nothing: ${endOf(ended)}\n`);
  healthy.set(name, passed);
  return passed;
}

function commandOf({ caughtBy, within }: Mutant): string[] {
  if (!isWorldKind(caughtBy)) {
    const vitest = join(copy, "node_modules/vitest/vitest.mjs");
    return [vitest, "run", caughtBy, "--project=!cluster-real", "--reporter=json", `--outputFile=${report}`];
  }
  const narrowed = within ? [within.law, within.edits.join(",")] : [];
  return [join(copy, "test/laws/first-broken.ts"), caughtBy, String(seeds), ...narrowed];
}

function endOf({ code, output, errors }: Awaited<ReturnType<typeof run>>): string {
  return code === "endless" ? "it does not come to an end" : `${output}${errors}`.trim().slice(-400);
}

function run(args: readonly string[]): Promise<{ code: number | null | "endless"; output: string; errors: string }> {
  const env = { ...process.env, NO_COLOR: "1" };
  const child = spawn(process.execPath, args, { cwd: copy, env, stdio: ["ignore", "pipe", "pipe"] });
  const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<typeof run>>>();
  let output = "";
  let errors = "";
  const late = setTimeout(() => {
    child.kill("SIGKILL");
    resolve({ code: "endless", output, errors });
  }, silentMs);
  child.stderr.on("data", (chunk) => {
    late.refresh();
    errors += chunk;
  });
  child.stdout.on("data", (chunk) => {
    late.refresh();
    output += chunk;
  });
  child.on("close", (code) => {
    clearTimeout(late);
    resolve({ code, output, errors });
  });
  return promise;
}
