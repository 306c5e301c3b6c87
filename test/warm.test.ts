import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const bin = join(import.meta.dirname, "../runtime/bin");

/** What Node says of the kept code of each module that a program loads. */
async function keptCode(
  ...args: readonly string[]
): Promise<{ named: Set<string>; accepted: string[]; rejected: string[] }> {
  const env = { ...process.env, NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
  const said = await promisify(execFile)(process.execPath, args, { env, maxBuffer: 64 * 1024 * 1024 });
  const lines = `${said.stdout}\n${said.stderr}`;
  const modules = (what: RegExp) => [...lines.matchAll(what)].flatMap(([, module]) => module ?? []);
  return {
    named: new Set(modules(/(file:\/\/\S+)/g)),
    accepted: modules(/(file:\/\/\S+) was accepted/g),
    rejected: modules(/(file:\/\/\S+) was rejected/g),
  };
}

test("a start takes all code that the installation has compiled for it", async () => {
  const { named } = await keptCode(join(bin, "warm.js"));
  const { accepted, rejected } = await keptCode(join(bin, "watchfire.js"), "dev", "--help");
  expect(accepted.filter((module) => named.has(module)).length).toBeGreaterThan(100);
  expect(rejected.filter((module) => named.has(module))).toEqual([]);
});
