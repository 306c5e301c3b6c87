import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import * as esbuild from "../../runtime/bundle/builder/esbuild.ts";
import { Imports } from "../../runtime/bundle/builder/imports.ts";
import { Lookups } from "../../runtime/bundle/builder/lookups.ts";
import { Rebuilds } from "../../runtime/bundle/builder/rebuilds.ts";
import { Resolver } from "../../runtime/bundle/builder/resolver.ts";
import { Builders } from "../../runtime/bundle/builders.ts";
import { entrySource } from "../../runtime/bundle/source-path.ts";
import { Sources } from "../../runtime/bundle/sources.ts";
import { treeOf } from "../bench/process-tree.ts";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** Number of child processes that build a folder's functions. Other tests in this process have their own builders. */
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

it("what a builder built before changes nothing of what it builds", async () => {
  const shared = "export const one = () => 1;\nexport const two = () => ({ two: 2 });\n";
  const folder = folderOf({
    "lib/shared.ts": shared,
    "a/handler.ts": `import { one } from "../lib/shared";\nexport default () => one();\n`,
    "b/handler.ts": `import { two } from "../lib/shared";\nexport default () => two();\n`,
    "broken/handler.ts": `import { three } from "../lib/shared";\nexport default () => three(;\n`,
    "guarded/handler.ts": "export default () => typeof process;\n",
  });
  const clock = new VirtualClock();
  const kept = new Builders({ folder, clock });
  onTestFinished(() => kept.close());
  const build = (builders: Builders, name: string) =>
    builders.bundle({ handler: join(folder, name, "handler.ts") }).catch((error: unknown) => String(error));
  const alone = async (name: string) => {
    const fresh = new Builders({ folder, clock });
    try {
      return await build(fresh, name);
    } finally {
      fresh.close();
    }
  };
  for (const name of ["a", "b", "a", "broken", "b", "guarded", "a"]) {
    expect(await build(kept, name), name).toEqual(await alone(name));
  }
  writeFileSync(join(folder, "lib/shared.ts"), `export const one = () => "another";\n${shared.split("\n")[1]}\n`);
  for (const name of ["a", "b", "broken", "a"]) expect(await build(kept, name), name).toEqual(await alone(name));
  expect(await build(kept, "a")).toMatchObject({ script: expect.stringContaining("another") });
});

it("a builder keeps nothing of a large build, and of few small ones", async () => {
  const large = `export default () => "${"x".repeat(2 ** 20)}";\n`;
  const names = Array.from({ length: 140 }, (_, index) => `f${index}`);
  const small = Object.fromEntries(names.map((name) => [`${name}/handler.ts`, "export default () => {};\n"]));
  const folder = folderOf({ "large/handler.ts": large, ...small });
  const way = new Rebuilds({
    stdin: { contents: `import handler from "./handler";\nhandler();`, sourcefile: entrySource },
    bundle: true,
    write: false,
    metafile: true,
    logLevel: "silent",
  });
  const contexts = vi.spyOn(esbuild, "context");
  onTestFinished(() => contexts.mockRestore());
  const build = (name: string) => {
    const sources = new Sources([{ path: folder, label: "", hidesDotNames: true }]);
    const handler = join(folder, name, "handler.ts");
    const resolver = new Resolver(sources, new Lookups());
    return way.build(new Imports({ sources, resolver, handler, ownFolder: folder, lenient: false }));
  };
  for (const name of names) await build(name);
  expect(contexts).toHaveBeenCalledTimes(3);
  await build("large");
  await build("f0");
  expect(contexts).toHaveBeenCalledTimes(4);
});
