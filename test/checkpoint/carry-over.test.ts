import { expect, test } from "vitest";
import { emptyBatch } from "../../runtime/checkpoint/batch.ts";
import { carryOver } from "../../runtime/checkpoint/carry-over.ts";
import { MemoryStore } from "../../runtime/checkpoint/memory.ts";
import { SqliteStore } from "../../runtime/checkpoint/sqlite.ts";
import { pause, systemClock } from "../../runtime/clock.ts";
import { resourceVersion } from "../../runtime/resource-version.ts";
import { folderOf } from "../tools/folder.ts";
import { lookMs, watchLoopLag } from "../tools/loop-lag.ts";

test("positions of many objects are carried over with the event loop turning, so that a Lease is renewed meanwhile", async () => {
  const from = new SqliteStore({ folder: folderOf({}) });
  const { id } = await from.openView("copy", "settings", "/ConfigMap");
  const body = Buffer.alloc(500, "x");
  const count = 40_000;
  await from.commit({
    ...emptyBatch,
    known: Array.from({ length: count }, (_, index) => ({
      view: id,
      key: `team/object-${index}`,
      state: {
        uid: "u",
        resourceVersion: resourceVersion(String(index)),
        hash: "",
        deleted: false,
        matched: true,
        body,
      },
    })),
  });
  const to = new MemoryStore();
  const lag = watchLoopLag();
  await carryOver(from, to);
  // So that a turn that was never had is seen, too.
  await pause(systemClock, 2 * lookMs);
  const worst = lag.stop();
  // Taken together it is more than half a second of work.
  expect(worst).toBeLessThan(300);
  let found = 0;
  await to.known((await to.views())[0]?.id ?? 0, () => found++);
  expect(found).toBe(count);
  await from.close(true);
});
