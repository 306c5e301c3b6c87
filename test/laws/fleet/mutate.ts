// Puts the faults of `mutants.ts` back, one at a time, in a copy of the tree. It runs what is to catch each: worlds, until one
// breaks a law, or a test file. A file has to pass in the copy as it is first. It ends with a table of the faults, and of the
// seed or the tests that failed.
// Arguments: words of the faults to try; none for all. SEEDS: how many worlds to try, 600.
import { spawn } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Mutant, mutants } from "./mutants.ts";

const root = join(import.meta.dirname, "../../..");
const seeds = Number(process.env.SEEDS ?? 600);
/** A mutant that makes a world go on for ever is caught as well; in milliseconds without a word. */
const silentMs = 180_000;

const words = process.argv.slice(2);
const chosen = mutants.filter(({ fault }) => words.every((word) => fault.includes(word)));
const copy = mkdtempSync(join(tmpdir(), "watchfire-mutants-"));
const files = ["package.json", "tsconfig.json", "vitest.config.ts"];
/** Test files by whether they pass on healthy code. */
const healthy = new Map<string, boolean>();
// Executors run under users of their own, and read it, too.
chmodSync(copy, 0o755);
try {
  // The packages as well: an executor may read those of its own tree alone.
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

/** What catches it; undefined where nothing does. */
async function verdict({ file, edits, caughtBy }: Mutant): Promise<string | undefined> {
  if (!(await passes(caughtBy))) return undefined;
  const at = join(copy, file);
  const before = readFileSync(at, "utf8");
  writeFileSync(
    at,
    edits.reduce((text, [from, to]) => text.replace(from, () => to), before),
  );
  const ended = await attempt(caughtBy);
  writeFileSync(at, before);
  if (ended === "endless") return caughtBy === "fleet" ? "a world that does not end" : undefined;
  if (ended.code === 0) return undefined;
  if (caughtBy === "fleet") return ended.output.trim();
  // A file that is not there, or cannot be read, fails as well, and proves nothing.
  const failed = failedTests(ended.errors);
  return failed === "" ? undefined : `${caughtBy}: ${failed}`;
}

/** Whether healthy code passes; worlds are run by `npm test`. */
async function passes(caughtBy: string): Promise<boolean> {
  if (caughtBy === "fleet") return true;
  const known = healthy.get(caughtBy);
  if (known !== undefined) return known;
  const ended = await attempt(caughtBy);
  const passed = ended !== "endless" && ended.code === 0;
  if (!passed) process.stderr.write(`${caughtBy} fails on healthy code: it proves nothing\n`);
  healthy.set(caughtBy, passed);
  return passed;
}

function attempt(caughtBy: string): ReturnType<typeof run> {
  if (caughtBy === "fleet") return run([join(copy, "test/laws/fleet/first-broken.ts"), String(seeds)]);
  return run([join(copy, "node_modules/vitest/vitest.mjs"), "run", caughtBy, "--project=!cluster-real"]);
}

function failedTests(errors: string): string {
  return [...new Set([...errors.matchAll(/ FAIL .*?\.test\.ts > (.*)/g)].map((match) => match[1]))].join("; ");
}

function run(args: readonly string[]): Promise<{ code: number | null; output: string; errors: string } | "endless"> {
  const env = { ...process.env, NO_COLOR: "1" };
  const child = spawn(process.execPath, args, { cwd: copy, env, stdio: ["ignore", "pipe", "pipe"] });
  const { promise, resolve } = Promise.withResolvers<
    { code: number | null; output: string; errors: string } | "endless"
  >();
  const late = setTimeout(() => {
    child.kill("SIGKILL");
    resolve("endless");
  }, silentMs);
  let output = "";
  let errors = "";
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
