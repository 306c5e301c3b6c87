import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const bin = join(import.meta.dirname, "../runtime/bin");

test("a start takes all code that the installation has compiled for it", { timeout: 60_000 }, async () => {
  const cache = await mkdtemp(join(tmpdir(), "compiled-"));
  onTestFinished(() => rm(cache, { recursive: true }));
  const { NODE_DISABLE_COMPILE_CACHE: _, ...inherited } = process.env;
  const env = { ...inherited, NODE_COMPILE_CACHE: cache, NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
  /** The modules of which Node says that. */
  const modules = async (what: RegExp, ...args: readonly string[]) => {
    const run = promisify(execFile)(process.execPath, args, { env, maxBuffer: 64 * 1024 * 1024 });
    // A start without a cluster says so, and has loaded its modules by then.
    const said = await run.catch((failed: { stdout: string; stderr: string }) => failed);
    return [...`${said.stdout}\n${said.stderr}`.matchAll(what)].map(([, module = "", verdict = ""]) => ({
      module,
      verdict,
    }));
  };
  const kept = new Set((await modules(/(file:\S+)/g, join(bin, "warm.js"))).map(({ module }) => module));
  const program = join(bin, "watchfire.js");
  const starts = [
    ["dev", "--help"],
    ["start", "--kubeconfig", join(cache, "none"), "--data", join(cache, "data")],
  ];
  const loaded: { module: string }[] = [];
  for (const start of starts) {
    const told = (await modules(/(file:\S+) was (accepted|rejected)/g, program, ...start)).filter(({ module }) =>
      kept.has(module),
    );
    expect(told.length).toBeGreaterThan(100);
    expect(told.filter(({ verdict }) => verdict === "rejected")).toEqual([]);
    loaded.push(...told);
  }
  expect(loaded.some(({ module }) => module.endsWith("/kube/kubeconfig.ts"))).toBe(true);
});
