import { appendFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { watchFolder } from "../../runtime/dev/folder-watch.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** A watched folder with the number of reported changes. Time moves only in `settled`. */
async function watched(files: Record<string, string>) {
  const folder = folderOf(files);
  const clock = new VirtualClock();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const told = { changes: 0, failures: [] as string[] };
  watchFolder(folder, {
    clock,
    signal: stop.signal,
    changed: () => told.changes++,
    failed: (reason) => told.failures.push(reason),
  });
  /** Waits for the file system's notification of a change, and then for `ms`. */
  const settled = async (ms: number) => {
    await until("a change is heard of", 10_000, async () => clock.timers > 0);
    await clock.advance(ms);
  };
  await settled(3_000);
  expect(told.changes).toBe(1);
  return { folder, told, settled, clock };
}

test("a file that is truncated and then written is one change, however long that takes", async () => {
  const { folder, told, settled } = await watched({ "handler.ts": "export default () => 1;" });
  const handler = join(folder, "handler.ts");
  truncateSync(handler);
  await settled(1_000);
  expect(told.changes).toBe(1);
  writeFileSync(handler, "export default () => 2;");
  await settled(3_000);
  expect(told.changes).toBe(2);
});

test("a file that grows is not taken up before it has stopped", async () => {
  const { folder, told, settled } = await watched({ "handler.ts": "export default " });
  for (let part = 0; part < 20; part++) {
    appendFileSync(join(folder, "handler.ts"), ` // ${part}`);
    await settled(50);
    expect(told.changes).toBe(1);
  }
  await settled(3_000);
  expect(told.changes).toBe(2);
});

test("a file that stays empty is a change in the end", async () => {
  const { folder, told, settled } = await watched({ "handler.ts": "export default () => 1;" });
  truncateSync(join(folder, "handler.ts"));
  await settled(5_000);
  expect(told.changes).toBe(2);
});

test("links that lead in a circle, or up, end no watch, and are told of as a fault where they stand for a manifest", async () => {
  const { folder, told, settled } = await watched({ "handler.ts": "" });
  symlinkSync("loop", join(folder, "loop"));
  symlinkSync("..", join(folder, "up"));
  symlinkSync("b.yaml", join(folder, "a.yaml"));
  symlinkSync("a.yaml", join(folder, "b.yaml"));
  await settled(3_000);
  // One change or several, depending on the machine's speed.
  expect(told.changes).toBeGreaterThan(1);
  expect(told.failures).toEqual([]);
  const { faults } = await loadFunctions(folder);
  expect(faults.map(({ code, detail }) => [code, detail.place?.file])).toContainEqual([
    "WF_MANIFEST_UNREADABLE",
    join(folder, "loop"),
  ]);
  expect(faults[0]?.message).toContain("a link leads in a circle (ELOOP)");
});
