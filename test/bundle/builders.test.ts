import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Builders } from "../../runtime/bundle/builders.ts";
import { treeOf } from "../bench/process-tree.ts";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** How many processes below this one build a folder's functions. Other tests of this process have builders of their own. */
const buildersOf = (folder: string) =>
  treeOf(process.pid).filter((pid) => {
    const name = nameOf(pid);
    return name.startsWith("watchfire builder") && name.includes(folder);
  }).length;

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

it.skipIf(process.platform !== "linux")(
  "a builder that has nothing to build for as long as it may ends, and the next build has another",
  async () => {
    const folder = folderOf({ "f/handler.ts": "export default () => {};\n" });
    const clock = new VirtualClock();
    const builders = new Builders({ folder, clock, idleMs: 2_000 });
    onTestFinished(() => builders.close());
    const handler = join(folder, "f/handler.ts");
    const first = await builders.bundle({ handler });
    await clock.advance(1_999);
    expect(buildersOf(folder)).toBe(1);
    await clock.advance(1);
    await until("no builder is left", 5_000, async () => buildersOf(folder) === 0);
    expect((await builders.bundle({ handler })).hash).toBe(first.hash);
  },
);
