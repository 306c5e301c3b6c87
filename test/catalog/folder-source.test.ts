// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are placeholders of manifests
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { FolderSource } from "../../runtime/catalog/folder-source.ts";
import type { FunctionCode } from "../../runtime/catalog/function-code.ts";
import { ManifestValues } from "../../runtime/manifest/values.ts";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";

const bundleOf = (hash: string) => ({
  script: "",
  sourceMap: "",
  sourceMapLength: 0,
  hash,
  inputs: [],
  usesOldObject: false,
});

/** Writes a function into its own folder below the functions folder. */
const writeFunction =
  (folder: string) =>
  (inner: string, name = inner) => {
    mkdirSync(join(folder, inner), { recursive: true });
    const triggers = [{ name: "all", watch: { apiVersion: "v1", kind: "ConfigMap" } }];
    const spec = { handler: "./handler.ts", triggers };
    const manifest = { apiVersion: "watchfire.dev/v1alpha1", kind: "Function", metadata: { name }, spec };
    writeFileSync(join(folder, inner, "function.yaml"), JSON.stringify(manifest));
    writeFileSync(join(folder, inner, "handler.ts"), "export default () => {};\n");
  };

const sourceOf = (...names: string[]) => sourceWith(names);

/** A folder with functions of these names, whose builds are numbered. */
function sourceWith(names: readonly string[], options?: ConstructorParameters<typeof FolderSource>[2]) {
  const folder = folderOf({});
  const write = writeFunction(folder);
  for (const name of names) write(name);
  const built: { readonly name: string; readonly signal: AbortSignal | undefined }[] = [];
  const code: FunctionCode = {
    bundle: async ({ name }, signal) => bundleOf(String(built.push({ name, signal }))),
    close: () => {},
  };
  return { source: new FolderSource(folder, code, options), built, write };
}

const namesIn = async (source: FolderSource) => (await source.read()).functions.map(({ manifest: { name } }) => name);

it("a folder that is read ahead is built before anybody asks, and what was built then is built once", async () => {
  const { source, built } = sourceOf("first", "second");
  source.begin();
  await until("both are built", 5_000, async () => built.length === 2);
  const { functions } = await source.read();
  const hashes = await Promise.all(functions.map(async (offer) => (await offer.bundle()).hash));
  expect(hashes.sort()).toEqual(["1", "2"]);
  expect(built.map(({ name }) => name).sort()).toEqual(["first", "second"]);
});

it("values are read at each read of the folder, and if they cannot be read no function counts as removed", async () => {
  const fault = new WatchfireError("WF_MANIFEST_UNREADABLE", { what: "it is not a regular file" });
  const valuesOf = (name: string) => ManifestValues.read(`name: ${name}`, "stage.yaml");
  const answers = [valuesOf("one"), fault, valuesOf("two")];
  const values = () => {
    const answer = answers.shift();
    if (answer instanceof WatchfireError) throw answer;
    return answer;
  };
  const { source, write } = sourceWith([], { values });
  write("first", "${name}");
  expect(await namesIn(source)).toEqual(["one"]);
  expect(await source.read()).toEqual({ functions: [], rejected: [], faults: [fault], complete: false });
  expect(await namesIn(source)).toEqual(["two"]);
});

it("what was read ahead counts once: whoever reads or builds again gets what lies there then", async () => {
  const { source, write } = sourceOf("first");
  source.begin();
  const [offer] = (await source.read()).functions;
  expect((await offer?.bundle())?.hash).toBe("1");
  expect((await offer?.bundle())?.hash).toBe("2");
  write("second");
  expect((await namesIn(source)).sort()).toEqual(["first", "second"]);
});

it("a build that began ahead ends when it is not wanted any more", async () => {
  const { source, built } = sourceOf("first");
  source.begin();
  const [offer] = (await source.read()).functions;
  const unwanted = new AbortController();
  await offer?.bundle(unwanted.signal);
  unwanted.abort();
  expect(built[0]?.signal?.aborted).toBe(true);
});

it("a folder that is read ahead is built while it is still being read", async () => {
  const names = Array.from({ length: 100 }, (_, index) => `function-${index}`);
  const { source, built } = sourceOf(...names);
  source.begin();
  const all = source.read();
  expect(built.length).toBeGreaterThan(0);
  expect(built.length).toBeLessThan(names.length);
  expect((await all).functions).toHaveLength(names.length);
  expect(built).toHaveLength(names.length);
});

it("a build that began ahead ends when another function turns out to claim the name", async () => {
  const { source, built, write } = sourceOf("first", "second");
  write("third", "first");
  source.begin();
  expect(await namesIn(source)).toEqual(["second"]);
  expect(built.map(({ name, signal }) => [name, signal?.aborted])).toEqual([
    ["first", true],
    ["second", false],
    ["first", true],
  ]);
});

it("builds that began ahead end when the folder cannot be read to its end", async () => {
  const folder = folderOf({});
  const write = writeFunction(folder);
  for (const name of ["first", "second"]) write(name);
  const signals: (AbortSignal | undefined)[] = [];
  const code: FunctionCode = {
    bundle: (_, signal) => {
      if (signals.push(signal) === 2) throw new Error("no second build");
      return Promise.resolve(bundleOf("1"));
    },
    close: () => {},
  };
  const source = new FolderSource(folder, code);
  source.begin();
  await expect(source.read()).rejects.toThrow("no second build");
  expect(signals[0]?.aborted).toBe(true);
});
