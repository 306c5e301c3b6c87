import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";

const program = join(import.meta.dirname, "small-volume.program.ts");
const mount = 'mount -t tmpfs -o size=40m tmpfs "$1"';

/** True if a mount namespace can be created, which a volume with its own size requires. */
function mayMount(): boolean {
  try {
    execFileSync("unshare", ["-m", "sh", "-c", mount, "sh", tmpdir()], { stdio: "ignore" });
    return true;
  } catch {
    process.stdout.write("skipped: no volume of 40 MiB can be mounted here (unshare -m)\n");
    return false;
  }
}

it.runIf(mayMount())(
  "a handler that fails at a 900 KB object each time it changes does not stop its neighbour on a volume of 40 MiB",
  { timeout: 120_000 },
  async () => {
    const root = mkdtempSync(join(tmpdir(), "watchfire-volume-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    // 180 MB of dead letters.
    const script = `${mount} && exec "$2" "$3" "$1" 200`;
    const { stdout } = await promisify(execFile)("unshare", [
      "-m",
      "sh",
      "-c",
      script,
      "sh",
      root,
      process.execPath,
      program,
    ]);
    const seen = JSON.parse(stdout);
    process.stdout.write(`${stdout}\n`);
    expect(seen).toMatchObject({ told: { neighbour: 200 }, failures: 0 });
    expect(seen.told.greedy + seen.collapsed).toBe(200);
    expect(seen.letterStock.bytes).toBeLessThan(6 << 20);
    expect(seen.letterStock.count).toBe(seen.told.greedy);
    expect(seen.letterStock.count - seen.letterStock.withoutBody).toBeLessThan(10);
    expect(seen.peak).toBeLessThan(36 << 20);
  },
);
