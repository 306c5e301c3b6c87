import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const program = join(import.meta.dirname, "full-disk.program.ts");
const mount = 'mount -t tmpfs -o size=16m tmpfs "$1"';

/** True if a mount namespace can be created, which a volume with its own size requires. */
function mayMount(): boolean {
  try {
    execFileSync("unshare", ["-m", "sh", "-c", mount, "sh", tmpdir()], { stdio: "ignore" });
    return true;
  } catch {
    process.stdout.write("skipped: no volume of 16 MiB can be mounted here (unshare -m)\n");
    return false;
  }
}

test.runIf(mayMount())("a full disk ends the history with one warning, and nothing else", async () => {
  const root = mkdtempSync(join(tmpdir(), "watchfire-volume-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const args = ["-m", "sh", "-c", `${mount} && exec "$2" "$3" "$1"`, "sh", root, process.execPath, program];
  const { stdout } = await promisify(execFile)("unshare", args);
  expect(JSON.parse(stdout)).toEqual({
    before: 10,
    after: 0,
    isOn: false,
    warnings: [{ code: "WF_HISTORY_BROKEN", error: expect.stringMatching(/full/) }],
    hasDropped: true,
  });
});
