import { appendFileSync, cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { ClusterProcess } from "../tools/watchfire-process.ts";
import { watchfire } from "./run.ts";
import { define, Session } from "./session.ts";

/** Two functions that share a file, built into `build`. */
async function project() {
  const folder = folderOf({ "functions/shared/two.ts": "export const two = 2;" });
  const functions = join(folder, "functions");
  define(functions, "one", `import { two } from "../shared/two.ts";\nexport default () => two;\n`);
  define(functions, "other");
  const out = join(folder, "build");
  const built = await watchfire(["build", "--functions", functions, "--out", out]);
  return { folder, functions, out, built };
}

/** All files of a folder, with their content. */
const contentOf = (folder: string): Record<string, string> =>
  Object.fromEntries(
    globSync("**", { cwd: folder, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [file.slice(folder.length + 1), readFileSync(file, "utf8")]),
  );

describe("watchfire build", () => {
  test("gives the same bytes for the same sources, wherever they lie, and names no folder of the machine", async () => {
    const { functions, out, built } = await project();
    expect(built.stderr).toBe("");
    expect(built.status).toBe(0);
    const content = contentOf(out);
    expect(Object.keys(content).sort()).toEqual([
      "one/function.yaml",
      "one/handler.js",
      "one/handler.js.map",
      "other/function.yaml",
      "other/handler.js",
      "other/handler.js.map",
      "watchfire.lock.json",
    ]);
    expect(JSON.stringify(content)).not.toContain(functions);
    const elsewhere = folderOf({});
    cpSync(functions, join(elsewhere, "deep/er/functions"), { recursive: true });
    await watchfire(["build", "--functions", join(elsewhere, "deep/er/functions"), "--out", join(elsewhere, "out")]);
    expect(contentOf(join(elsewhere, "out"))).toEqual(content);
  });

  test("replaces what an earlier build wrote, and nothing else", async () => {
    const { folder, functions, out } = await project();
    rmSync(join(functions, "other"), { recursive: true });
    expect((await watchfire(["build", "--functions", functions, "--out", out])).status).toBe(0);
    expect(Object.keys(contentOf(out)).some((name) => name.startsWith("other/"))).toBe(false);
    const mine = join(folder, "mine");
    mkdirSync(mine);
    writeFileSync(join(mine, "thesis.txt"), "ten years");
    const refused = await watchfire(["build", "--functions", functions, "--out", mine]);
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringMatching(/^WF_BUILD_FOLDER /) });
    expect(contentOf(mine)).toEqual({ "thesis.txt": "ten years" });
    for (const bad of [functions, folder, join(functions, "out")]) {
      const { status, stderr } = await watchfire(["build", "--functions", functions, "--out", bad]);
      expect([status, stderr]).toEqual([1, expect.stringMatching(/^WF_CLI_USAGE: /)]);
    }
  }, 60_000);

  test("writes nothing where a function cannot be built or loaded", async () => {
    const { functions, out } = await project();
    const before = contentOf(out);
    define(functions, "bad", "export default 3;");
    const { status, stderr } = await watchfire(["build", "--functions", functions, "--out", out]);
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^WF_BUNDLE_NO_HANDLER .*bad\/handler\.ts/)]);
    expect(contentOf(out)).toEqual(before);
  });

  test("what differs from the lock in any byte, lacks or was added is refused whole, with all of it told", async () => {
    const { folder, out } = await project();
    const changes: readonly (readonly [string, (copy: string) => void])[] = [
      ["one", (copy) => appendFileSync(join(copy, "one/handler.js"), " ")],
      ["one", (copy) => appendFileSync(join(copy, "one/function.yaml"), "\n")],
      ["one/handler.js.map", (copy) => rmSync(join(copy, "one/handler.js.map"))],
      ["added", (copy) => define(copy, "added")],
      ["one/handler.mjs", (copy) => writeFileSync(join(copy, "one/handler.mjs"), "")],
      ["one/function.yml", (copy) => cpSync(join(copy, "other/function.yaml"), join(copy, "one/function.yml"))],
      ["watchfire.lock.json", (copy) => appendFileSync(join(copy, "watchfire.lock.json"), "x")],
    ];
    for (const [no, [place, change]] of changes.entries()) {
      const copy = join(folder, `copy${no}`);
      cpSync(out, copy, { recursive: true });
      change(copy);
      const { status, stderr } = await watchfire(["validate", "--functions", copy]);
      expect([status, stderr]).toEqual([1, expect.stringContaining(`WF_BUILD_DAMAGED ${join(copy, place)}: `)]);
    }
  }, 60_000);
});

test("start runs what was built, where the sources are gone, and refuses sources in a pod", async () => {
  const { folder, functions, out } = await project();
  const cluster = await ClusterProcess.start(folder);
  const start = (from: string) => [
    "start",
    ...["--functions", from, "--data", join(folder, "data"), "--listen", "127.0.0.1:0"],
    ...["--kubeconfig", cluster.kubeconfig],
  ];
  const inPod = { POD_NAMESPACE: "default" };
  const refused = await watchfire(start(functions), inPod);
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringMatching(/^WF_BUILD_SOURCES .*watchfire build/)]);
  rmSync(functions, { recursive: true });
  const session = new Session(start(out), inPod);
  await session.says(/"msg":"ready"/);
  expect(session.output).not.toMatch(/"level":"(?:warn|error)"/);
  session.signal("SIGTERM");
  expect(await session.end()).toBe(0);
  appendFileSync(join(out, "other/handler.js"), " ");
  const damaged = await watchfire(start(out), inPod);
  expect([damaged.status, damaged.stderr]).toEqual([1, expect.stringMatching(/^WF_BUILD_DAMAGED /)]);
  await cluster.stop();
}, 60_000);
