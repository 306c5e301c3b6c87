import { chmodSync, openSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildHandler } from "../../runtime/bundle/builder/build-handler.ts";
import { Imports } from "../../runtime/bundle/builder/imports.ts";
import { Lookups } from "../../runtime/bundle/builder/lookups.ts";
import { Resolver } from "../../runtime/bundle/builder/resolver.ts";
import { Sources } from "../../runtime/bundle/sources.ts";
import { bundleFunction } from "../tools/bundle.ts";
import { folderOf } from "../tools/folder.ts";

const isRoot = process.getuid?.() === 0;
if (isRoot) process.stdout.write("skipped: a build of files that a user may not read; root may read all\n");

const systemError = (code: string) => Object.assign(new Error(`${code}: as Node words it`), { code, errno: -1 });

/** The messages of a handler's build if the system refuses to open one of its files. */
async function saidOf(files: Record<string, string>, closed: string, code: string): Promise<string[]> {
  const folder = folderOf(files);
  const sources = new Sources([{ path: folder, label: "", hidesDotNames: true }], (path, flags) => {
    if (path === join(folder, closed)) throw systemError(code);
    return openSync(path, flags);
  });
  const handler = join(folder, "handler.ts");
  const resolver = new Resolver(sources, new Lookups());
  const imports = new Imports({ sources, resolver, handler, ownFolder: folder, lenient: false });
  const show = (file: string) => sources.nameOf(file);
  const { faults } = await buildHandler({ subject: { imports, handler, show }, marked: false, lenient: false });
  return faults.map(({ message }) => message);
}

const refusal = (handler: string): Promise<string> =>
  bundleFunction({ handler }).then(
    () => expect.unreachable("the build was not refused"),
    (error: Error) => error.message,
  );

describe("a file that the system does not open is a fault of the function", () => {
  it.each([
    ["EACCES", "permission is denied (EACCES)"],
    ["EIO", "the disk fails to read or write (EIO)"],
    ["ENOENT", "there is no such file or folder (ENOENT)"],
    ["EMFILE", "too many files are open (EMFILE)"],
  ])("for %s, at the import of the file", async (code, words) => {
    const files = { "handler.ts": `\nimport "./lib/one.ts";\nexport default () => 1;\n`, "lib/one.ts": "" };
    expect(await saidOf(files, "lib/one.ts", code)).toEqual([
      expect.stringMatching(/^WF_BUNDLE_UNREADABLE handler\.ts:2:8: "lib\/one\.ts" cannot be imported: /),
    ]);
    expect((await saidOf(files, "lib/one.ts", code)).join()).toContain(words);
  });

  it("and where it is the handler itself, names that file", async () => {
    expect(await saidOf({ "handler.ts": "export default () => 1;\n" }, "handler.ts", "EACCES")).toEqual([
      expect.stringMatching(
        /^WF_BUNDLE_UNREADABLE handler\.ts: the handler cannot be built: permission is denied \(EACCES\); let the user/,
      ),
    ]);
  });

  it("in a builder, which goes on: a link in a circle, and a name that is too long", async () => {
    const long = `./${"x".repeat(300)}.ts`;
    const folder = folderOf({
      "handler.ts": `import "./circle.ts";\nimport "${long}";\nexport default () => 1;\n`,
      "good.ts": "export default () => 1;\n",
    });
    symlinkSync("circle.ts", join(folder, "circle.ts"));
    const said = await refusal(join(folder, "handler.ts"));
    expect(said).toMatch(/^WF_BUNDLE_UNREADABLE .*handler\.ts:1:8: "\.\/circle\.ts" cannot be imported: .*\(ELOOP\)/);
    expect(said).toContain("and 1 more");
    expect(await refusal(join(folder, "circle.ts"))).toMatch(/^WF_BUNDLE_UNREADABLE .*circle\.ts: .*\(ELOOP\)/);
    expect((await bundleFunction({ handler: join(folder, "good.ts") })).script).not.toBe("");
  });

  it.skipIf(isRoot)("in a builder: a file and a folder without the right to read", async () => {
    const folder = folderOf({
      "handler.ts": `import "./lib/one.ts";\nexport default () => 1;\n`,
      "lib/one.ts": "",
      "closed.ts": "",
    });
    for (const name of ["lib", "closed.ts"]) chmodSync(join(folder, name), 0);
    try {
      expect(await refusal(join(folder, "handler.ts"))).toMatch(
        /^WF_BUNDLE_UNREADABLE .*handler\.ts:1:8: .*\(EACCES\)/,
      );
      expect(await refusal(join(folder, "closed.ts"))).toMatch(/^WF_BUNDLE_UNREADABLE .*closed\.ts: .*\(EACCES\)/);
    } finally {
      chmodSync(join(folder, "lib"), 0o755);
    }
  });
});
