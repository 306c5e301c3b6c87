import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Status } from "../../runtime/host/status.ts";
import { Client } from "../target/client.ts";
import { accessOf } from "../target/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";
import { define, manifest, Session, write } from "./session.ts";

test("a change of the folder is one line that says what came of it", async () => {
  const folder = folderOf({});
  const functions = join(folder, "functions");
  define(functions, "steady");
  const dev = new Session(["dev", "--functions", functions, "--data", join(folder, "data"), "--port", "0"]);
  const banner = await dev.says(/stop\s+Ctrl-C/);
  const url = /http:\S+\/status/.exec(banner)?.[0] ?? "";
  const functionNamed = async (name: string) =>
    ((await (await fetch(url)).json()) as Status).functions.find((each) => each.name === name);
  /** The lines up to the awaited one, without the time of day. */
  const lines = async (pattern: RegExp) =>
    (await dev.says(pattern)).split("\n").flatMap((line) => (/^\d\d:/.test(line) ? line.slice(10) : []));

  define(functions, "guest");
  expect(await lines(/function added/)).toEqual(["guest  function added"]);

  write(join(functions, "guest", "handler.ts"), "export default () => { return 1; };");
  expect(await lines(/change loaded/)).toEqual(["guest  change loaded"]);

  write(join(functions, "guest", "function.yaml"), manifest("guest", "  colour: red"));
  expect(await lines(/WF_MANIFEST_UNKNOWN_FIELD/)).toEqual(["guest  change refused, the old version runs on"]);
  const refused = await functionNamed("guest");
  expect(refused).toMatchObject({ ready: true, reason: "ChangeRefused", code: "WF_MANIFEST_UNKNOWN_FIELD" });
  expect(refused?.message).toMatch(/the old version runs on: WF_MANIFEST_UNKNOWN_FIELD .*function\.yaml:8:3/);

  write(join(functions, "guest", "function.yaml"), manifest("guest"));
  expect(await lines(/function mended/)).toEqual(["guest  function mended"]);
  expect((await functionNamed("guest"))?.reason).toBeUndefined();

  write(join(functions, "guest", "handler.ts"), "export default () => {");
  expect(await lines(/WF_BUNDLE_SYNTAX/)).toEqual(["guest  change refused, the old version runs on"]);
  expect(await functionNamed("guest")).toMatchObject({
    ready: true,
    reason: "ChangeRefused",
    code: "WF_BUNDLE_SYNTAX",
  });

  define(functions, "broken", "export default 3;");
  expect(await lines(/WF_BUNDLE_NO_HANDLER/)).toEqual(["broken  function disabled"]);

  write(join(functions, "broken", "handler.ts"), "export default () => {};");
  expect(await lines(/function mended/)).toEqual(["broken  function mended"]);

  write(join(functions, "late", "function.yaml"), manifest("late", "  colour: red"));
  expect(await lines(/WF_MANIFEST_UNKNOWN_FIELD/)).toEqual(["late  manifest refused"]);

  define(functions, "late");
  expect(await lines(/late\s+function mended/)).toEqual(["late  function mended"]);

  renameSync(join(functions, "broken"), join(functions, "whole"));
  write(join(functions, "whole", "function.yaml"), manifest("whole"));
  expect((await lines(/whole\s+function added/)).sort()).toEqual(["broken  function removed", "whole  function added"]);

  // Once this is loaded, no build of it is in progress whose files could disappear during their removal.
  write(join(functions, "guest", "handler.ts"), "export default () => { return 2; };");
  expect(await lines(/change loaded/)).toEqual(["guest  change loaded"]);
  rmSync(join(functions, "guest"), { recursive: true });
  expect(await lines(/function removed/)).toEqual(["guest  function removed"]);

  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});

test("a manifest whose name goes bad or is another's leaves what ran running; a good new name is a removal and an addition", async () => {
  const functions = join(folderOf({}), "functions");
  const all = "{ apiVersion: v1, kind: Namespace }";
  const rename = (name: string) => write(join(functions, "guest", "function.yaml"), manifest(name, "", all));
  define(functions, "steady");
  define(functions, "guest", undefined, manifest("guest", "", all));
  const dev = new Session(["dev", "--functions", functions, "--data", join(folderOf({}), "data")]);
  const url = /http:\S+\/status/.exec(await dev.says(/Ctrl-C/))?.[0] ?? "";
  const standing = async () => {
    const { functions } = (await (await fetch(url)).json()) as Status;
    return functions.map(({ name, ready, code }) => [name, ready, code]).sort();
  };
  for (const [name, code] of [
    ["Guest_1", "WF_MANIFEST_INVALID_VALUE"],
    ["[]", "WF_MANIFEST_WRONG_TYPE"],
    ["{", "WF_MANIFEST_SYNTAX"],
  ] as const) {
    rename(name);
    expect(await dev.says(new RegExp(code))).toMatch(/guest {2}change refused, the old version runs on/);
    expect(await standing()).toEqual([
      ["guest", true, code],
      ["steady", true, undefined],
    ]);
  }

  rename("steady");
  await dev.says(
    /guest {2}change refused, the old version runs on\n.*WF_MANIFEST_DUPLICATE_NAME .*steady\/function\.yaml/,
  );
  expect(await standing()).toEqual([
    ["guest", true, "WF_MANIFEST_DUPLICATE_NAME"],
    ["steady", true, "WF_MANIFEST_DUPLICATE_NAME"],
  ]);

  rename("guest");
  await dev.says(/guest {2}function mended/);
  expect(dev.output).not.toContain("function removed");
  rename("visitor");
  await dev.says(/visitor {2}Added v1\/Namespace default {2}ok/);
  expect(dev.output).toMatch(/guest {2}function removed, its manifest has another name now {2}successor=visitor\n/);
  expect(dev.output).toMatch(/visitor {2}function added\n/);
});

test("the code that is shown around an error is the code that ran, whatever the file says by now", async () => {
  const folder = folderOf({});
  const functions = join(folder, "functions");
  const retry = "  delivery: { retry: { maxAttempts: 100, initialDelay: 200ms, maxDelay: 200ms } }";
  const everything = "{ apiVersion: v1, kind: Namespace }";
  define(functions, "f", "export default () => {\n  throw new Error('old');\n};", manifest("f", retry, everything));
  const dev = new Session(["dev", "--functions", functions, "--data", join(folder, "data"), "--port", "0"]);
  await dev.says(/> 2 \| {3}throw new Error\('old'\);/);

  write(join(functions, "f", "handler.ts"), "export default () => {\n  return 'begun anew\n};");
  await dev.says(/change refused, the old version runs on/);
  expect(await dev.says(/> 2 \|.*/)).toMatch(/> 2 \| {3}throw new Error\('old'\);/);

  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});

test("that a kind is not served yet stands in the table, no line comes before it, and that it is served then is told", async () => {
  const folder = folderOf({});
  const functions = join(folder, "functions");
  const watch = "{ apiVersion: example.org/v1, kind: Widget }";
  define(functions, "follower", "export default () => {};", manifest("follower", "", watch));
  const dev = new Session(["dev", "--functions", functions, "--data", join(folder, "data"), "--port", "0"]);
  const banner = await dev.says(/Ctrl-C/);
  expect(banner).toMatch(/^\n {2}watchfire /);
  expect(banner).toMatch(/follower {2}example\.org\/v1\/Widget, not served yet {2}/);
  const admin = new Client(await accessOf(join(folder, "data", "kubeconfig")));
  const names = { kind: "Widget", plural: "widgets" };
  const version = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } };
  await admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.example.org" },
    spec: { group: "example.org", scope: "Namespaced", names, versions: [version] },
  });
  expect(await dev.says(/source recovered/)).toMatch(/source recovered {2}source=example\.org\/v1\/Widget/);
  await admin.close();
});

test("a trigger that the API server refuses keeps neither the table nor its mending from coming", async () => {
  const folder = folderOf({});
  const functions = join(folder, "functions");
  const refused = "{ apiVersion: v1, kind: ConfigMap, fieldSelector: data.x=1 }";
  define(functions, "steady");
  define(functions, "odd", "export default () => {};", manifest("odd", "", refused));
  const dev = new Session(["dev", "--functions", functions, "--data", join(folder, "data"), "--port", "0"]);
  const banner = await dev.says(/stop\s+Ctrl-C/);
  expect(banner).toMatch(/"data\.x" is not a known field selector/);
  expect(banner).toMatch(/not ready yet/);
  write(join(functions, "odd", "function.yaml"), manifest("odd"));
  await dev.says(/odd\s+change loaded/);
  const url = /http:\S+\/status/.exec(banner)?.[0] ?? "";
  await expect.poll(async () => (await fetch(url.replace("/status", "/readyz"))).status, { timeout: 15_000 }).toBe(200);
});
