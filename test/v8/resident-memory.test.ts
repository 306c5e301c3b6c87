import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { MemoryWatch, residentBytes } from "../../runtime/v8/resident-memory.ts";
import { until } from "../tools/until.ts";

const hasProc = existsSync("/proc/self/statm");

/** True if this process has that process's file open. */
const isOpen = (pid: number | undefined) =>
  readdirSync("/proc/self/fd").some((file) => {
    try {
      return readlinkSync(`/proc/self/fd/${file}`).startsWith(`/proc/${pid}/`);
    } catch {
      return false; // closed meanwhile
    }
  });

test.runIf(hasProc)("a process that outgrows its cap is told of once, with what it has", async () => {
  const told: string[] = [];
  const watch = new MemoryWatch(process.pid, 1024 * 1024, (detail) => told.push(detail));
  await until("it is told of", 5_000, async () => told.length > 0);
  // A watch that starts after the other has checked: by then the first would have checked again.
  const later = new MemoryWatch(process.pid, Number.POSITIVE_INFINITY, () => expect.unreachable());
  await until("another look was taken", 5_000, async () => later.peak > 0);
  later.stop();
  expect(told).toEqual([expect.stringMatching(/^\d+ MiB resident, cap 1 MiB$/)]);
  expect(watch.peak).toBeGreaterThan(residentBytes(process.pid) / 2);
  watch.stop();
});

test.runIf(hasProc)(
  "a process that runs no code is checked too, and never again once it was found too large",
  async () => {
    const told: string[] = [];
    const watch = new MemoryWatch(process.pid, Number.POSITIVE_INFINITY, (detail) => told.push(detail));
    watch.look(false);
    watch.cap = 1024 * 1024;
    await until("it is told of", 5_000, async () => told.length > 0);
    watch.look(true);
    const later = new MemoryWatch(process.pid, Number.POSITIVE_INFINITY, () => expect.unreachable());
    await until("another look was taken", 5_000, async () => later.peak > 0);
    later.stop();
    expect(told).toHaveLength(1);
  },
);

test.runIf(hasProc)("a process that has ended has no memory, and its watch leaves no file open", async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  const watch = new MemoryWatch(child.pid, Number.POSITIVE_INFINITY, () => expect.unreachable());
  await until("it was looked at", 5_000, async () => watch.peak > 0);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(residentBytes(child.pid)).toBe(0);
  expect(isOpen(child.pid)).toBe(true);
  watch.stop();
  expect(isOpen(child.pid)).toBe(false);
});

test.runIf(hasProc)("a process that may open no file for a moment is looked at again behind that", async () => {
  const program = join(import.meta.dirname, "resident-memory.program.ts");
  const limited = ["-c", `ulimit -n 64 && exec "$0" "$1"`, process.execPath, program];
  const { stdout } = await promisify(execFile)("sh", limited, { timeout: 10_000 });
  expect(JSON.parse(stdout)).toEqual({ without: 0, behind: true });
});
