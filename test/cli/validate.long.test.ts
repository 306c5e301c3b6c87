import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { commandsOf } from "../readme/blocks.ts";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";
import { define, manifest, outcome } from "./session.ts";

const validate = (functions: string) => outcome("validate", "--functions", functions);

/** Handlers that can be built but not loaded, with the message for each. */
const unloadable: readonly (readonly [name: string, code: string, fault: RegExp])[] = [
  [
    "number",
    "\nexport default 3;\n",
    /^WF_BUNDLE_NO_HANDLER .*number\/handler\.ts:2:1: the default export is of type number/m,
  ],
  [
    "class",
    "\nexport default class Handler {}\n",
    /^WF_BUNDLE_NO_HANDLER .*class\/handler\.ts:2:1: the default export is a class, which cannot be called as a function/m,
  ],
  ["nameless", "export const handle = () => {};\n", /^WF_BUNDLE_\w+ .*nameless\/handler\.ts:1:1: /m],
  ["empty", "", /^WF_BUNDLE_NO_HANDLER .*empty\/handler\.ts:1:1: the file exports nothing; write /m],
  ["comment", "// soon\n", /^WF_BUNDLE_NO_HANDLER .*comment\/handler\.ts:1:1: the file exports nothing; write /m],
  ["common", "module.exports = {};\n", /^WF_BUNDLE_\w+ .*common\/handler\.ts:1:1: /m],
  [
    "thrower",
    "export default () => {};\nconst start = () => {\n  throw new TypeError('no');\n};\nstart();\n",
    /^WF_SANDBOX_LOAD .*thrower\/handler\.ts:3:9: the module's top level threw TypeError: no; /m,
  ],
  ["loop", "export default () => {};\nwhile (true) {}\n", /^WF_SANDBOX_LOAD_TIME .*loop\/handler\.ts:\d+:\d+: /m],
  [
    "glutton",
    "const all: unknown[] = [];\nfor (;;) all.push(new Array(1e5).fill(all.length));\nexport default () => {};\n",
    /^WF_SANDBOX_MEMORY .*glutton\/handler\.ts:\d+:\d+: /m,
  ],
];

describe("validate loads what it has built, in an executor with the function's limits", () => {
  it.each(unloadable)("a handler that cannot be loaded is a fault with its place: %s", async (name, code, fault) => {
    const folder = folderOf({});
    define(folder, name, code);
    const { status, output } = await validate(folder);
    expect(output).toMatch(fault);
    expect(output).toMatch(/^0 valid, 1 fault$/m);
    expect(status).toBe(1);
  });

  test("what is found is told to programs as JSON, with its place", async () => {
    const folder = folderOf({});
    define(folder, "good", "export default () => {};\n");
    define(folder, "number", "\nexport default 3;\n");
    const { stdout, status } = await watchfire(["validate", "--functions", folder, "-o", "json"]);
    const { valid, faults } = JSON.parse(stdout);
    expect([status, valid]).toEqual([1, ["good"]]);
    const place = { file: expect.stringMatching(/number\/handler\.ts$/), line: 2, column: 1 };
    expect(faults).toEqual([expect.objectContaining({ code: "WF_BUNDLE_NO_HANDLER", place })]);
  });

  test("one that cannot be loaded keeps no other from being told of", async () => {
    const folder = folderOf({});
    for (const [name, code] of unloadable) define(folder, name, code);
    define(folder, "good");
    define(folder, "ill", "export default () => {};", manifest("ill", "  colour: red"));
    const { status, output } = await validate(folder);
    for (const [, , fault] of unloadable) expect(output).toMatch(fault);
    expect(output).toMatch(/^WF_MANIFEST_UNKNOWN_FIELD /m);
    expect(output).toContain(`1 valid, ${unloadable.length + 1} faults`);
    expect(status).toBe(1);
  });

  test("handlers are not called, and need no value of their environment", async () => {
    const folder = folderOf({});
    const env = "  env: [{ name: TOKEN, valueFrom: { secretKeyRef: { name: none, key: none } } }]";
    define(folder, "caller", "export default () => { throw new Error('called'); };", manifest("caller", env));
    expect(await validate(folder)).toMatchObject({ status: 0, output: expect.stringMatching(/^1 valid, 0 faults$/m) });
  });
});

test("a folder without a function is none that can pass", async () => {
  const { status, output } = await validate(folderOf({ "notes.txt": "soon" }));
  expect(output).toMatch(
    /^WF_MANIFEST_NONE \S+: there is no function below it; name the right folder with --functions/,
  );
  expect(status).toBe(1);
});

describe("a permission that reaches the runtime's own objects", () => {
  const granting = (namespaces: string) =>
    `  permissions:\n    - { apiGroups: [""], resources: [configmaps], verbs: [get, patch]${namespaces} }`;
  const warning =
    /^warning: WF_RBAC_OWN_OBJECTS \S*f\/function\.yaml:\d+:7 spec\.permissions\[0\]: patch of configmaps reaches .*; .*$/m;

  test.each([
    ["validate", []],
    ["validate", ["--namespace", "watchfire"]],
    ["rbac", ["--namespace", "watchfire"]],
  ])("is warned of with its place, and %s %j ends well", async (command, more) => {
    const folder = folderOf({});
    define(folder, "f", "export default () => {};", manifest("f", granting("")));
    const { status, output } = await outcome(command, "--functions", folder, ...more);
    expect(output).toMatch(warning);
    const [line = ""] = warning.exec(output) ?? [];
    const [, row = ""] = /function\.yaml:(\d+):/.exec(line) ?? [];
    expect(manifest("f", granting("")).split("\n")[Number(row) - 1]).toContain("resources: [configmaps]");
    if (command === "validate") expect(output).toMatch(/^1 valid, 0 faults, 1 warning$/m);
    expect(status).toBe(0);
  });

  test.each(["validate", "rbac"])(
    "is warned of by `%s` where it reaches the cluster instead, with what it reaches",
    async (command) => {
      const folder = folderOf({});
      const nodes = `  permissions: [{ apiGroups: [""], resources: [nodes/proxy], verbs: [get] }]`;
      define(folder, "f", "export default () => {};", manifest("f", nodes));
      const { status, output } = await outcome(command, "--functions", folder, "--namespace", "watchfire");
      expect(output).toMatch(
        /^warning: WF_RBAC_POWERFUL \S*f\/function\.yaml:\d+:\d+ spec\.permissions\[0\]: get of nodes\/proxy reaches commands in every pod of a node .*; leave out/m,
      );
      expect(status).toBe(0);
    },
  );

  test("is none where it names other namespaces", async () => {
    const folder = folderOf({});
    define(folder, "f", "export default () => {};", manifest("f", granting(", namespaces: [team-a]")));
    const { output } = await outcome("validate", "--functions", folder, "--namespace", "watchfire");
    expect(output).toMatch(/^1 valid, 0 faults$/m);
  });
});

test("`rbac --explain` prints in words what each function can see and do, without a cluster, a namespace or an object", async () => {
  const folder = folderOf({});
  const spec = `  permissions: [{ apiGroups: [""], resources: [nodes/proxy], verbs: [get] }, { apiGroups: ["*"], resources: ["*"], verbs: [list] }]`;
  define(join(folder, "functions"), "a", "export default () => {};", manifest("a", spec));
  define(join(folder, "functions"), "b");
  const [command = "", ...more] = commandsOf("runtime/docs/security.md");
  expect(command).toMatch(/^npx watchfire rbac --explain /);
  expect(more).toEqual([]);
  const { status, stdout, stderr } = await watchfire(command.split(" ").slice(2), {}, folder);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toMatch(
    /^a\n {2}acts, .*\n {4}list all resources of every API group everywhere\n.*\n\nb\n {2}acts, /s,
  );
  expect(stdout).toContain("    get of nodes/proxy reaches commands in every pod of a node");
  expect(stdout).not.toContain("apiVersion:");
});

describe("a permission for all that there is", () => {
  const open = `  permissions:\n    - { apiGroups: ["*"], resources: [pods, "*"], resourceNames: ["*"], verbs: [get], namespaces: [a] }`;
  const told = [
    /^(?:warning: )?WF_RBAC_WILDCARD \S*function\.yaml:9:21 spec\.permissions\[0\]\.apiGroups\[0\]: it asks for all API groups, which `rbac` and `deploy` refuse, got "\*"; /m,
    /^(?:warning: )?WF_RBAC_WILDCARD \S*function\.yaml:9:45 spec\.permissions\[0\]\.resources\[1\]: it asks for all resources, /m,
    /^(?:warning: )?WF_RBAC_WILDCARD \S*function\.yaml:9:67 spec\.permissions\[0\]\.resourceNames\[0\]: .*; leave resourceNames out /m,
  ];
  const folderOfOpen = () => {
    const folder = folderOf({});
    define(folder, "f", "export default () => {};", manifest("f", open));
    return folder;
  };

  test("is warned of by `validate`, since a runtime may start with it", async () => {
    const { status, output } = await validate(folderOfOpen());
    for (const line of told) expect(output).toMatch(line);
    expect(output).toMatch(/^1 valid, 0 faults, 3 warnings$/m);
    expect(status).toBe(0);
  });

  test("is refused by `rbac`, each with its place", async () => {
    const { status, output } = await outcome("rbac", "--functions", folderOfOpen(), "--namespace", "watchfire");
    for (const line of told) expect(output).toMatch(line);
    expect(output).not.toContain("warning:");
    expect(status).toBe(1);
  });
});

describe("positions in Secrets", () => {
  const store = ["--store", "kubernetes"];

  test("are warned of: their room, and each reader of the previous object, with its place", async () => {
    const folder = folderOf({});
    define(folder, "f", "export default (event) => event.oldObject;", manifest("f"));
    const { status, output } = await outcome("validate", "--functions", folder, ...store);
    expect(output).toMatch(/^warning: WF_CHECKPOINT_LIMITS: .*30,000 objects; 64 MiB of bodies/m);
    expect(output).toMatch(
      /^warning: WF_CHECKPOINT_OLD_OBJECT \S*f\/function\.yaml:\d+:\d+ spec\.handler: `oldObject` is absent/m,
    );
    expect(output).toMatch(/^1 valid, 0 faults, 2 warnings$/m);
    expect(status).toBe(0);
  });

  test("are warned of at a condition that compares, too", async () => {
    const folder = folderOf({});
    const compares =
      "{ apiVersion: v1, kind: ConfigMap, matchConditions: [{ name: moved, expression: object.spec != oldObject.spec }] }";
    define(folder, "f", "export default () => {};", manifest("f", "", compares));
    const { output } = await outcome("validate", "--functions", folder, ...store);
    expect(output).toMatch(
      /^warning: WF_CHECKPOINT_OLD_OBJECT \S+ spec\.triggers\[0\]: a condition on `oldObject` holds/m,
    );
  });

  test("are no matter where positions are on a volume", async () => {
    const folder = folderOf({});
    define(folder, "f", "export default (event) => event.oldObject;", manifest("f"));
    expect((await outcome("validate", "--functions", folder)).output).toMatch(/^1 valid, 0 faults$/m);
  });
});

test("a folder that looks like a function's and has no manifest is a warning with the name that it should have", async () => {
  const folder = folderOf({
    "first/functions.yaml": "kind: Function\n",
    "second/Function.yaml": "kind: Function\n",
    "third/manifest.yml": "kind: Function\n",
    "fourth/handler.ts": "export default () => {};\n",
    "shared/words.ts": "export const word = 1;\n",
  });
  const warnings = (output: string) => output.match(/^warning: WF_MANIFEST_STRAY \S+ .*$/gm) ?? [];
  expect(warnings((await validate(folder)).output)).toHaveLength(4);
  define(folder, "good", undefined, manifest("good"));
  const { status, output } = await validate(folder);
  expect(warnings(output)).toMatchObject([
    expect.stringMatching(/first\/functions\.yaml: .*; rename it to \S*first\/function\.yaml$/),
    expect.stringMatching(
      /fourth\/handler\.ts: there is no function\.yaml next to this handler; write a function\.yaml/,
    ),
    expect.stringMatching(/second\/Function\.yaml: /),
    expect.stringMatching(/third\/manifest\.yml: /),
  ]);
  expect(output).toMatch(/^1 valid, 0 faults, 4 warnings$/m);
  expect(status).toBe(0);
});

test("a handler's Triggers are compared with the manifest: another name, another kind and no schedule are faults with both places", async () => {
  const folder = folderOf({});
  const rule =
    "    - { name: nightly, schedule: { every: 1h } }\n    - { name: pods, watch: { apiVersion: v1, kind: Pod } }";
  const text = (name: string) => manifest(name).replace(/triggers: .*/, `triggers:\n${rule}`);
  const typed = (types: string) => `import { defineHandler, type Scheduled, type Triggers } from "@watchfire/sdk";
import type { V1ConfigMap, V1Pod, V1Secret } from "@watchfire/sdk/kubernetes";
// Triggers<{ commented: V1Pod }>
export default defineHandler<Triggers<${types}>>((event) => void event.trigger);
`;
  define(folder, "good", typed('{ "nightly": Scheduled; readonly pods: V1Pod }'), text("good"));
  define(folder, "bad", typed("{\n  nightly: V1Secret;\n  pods: V1ConfigMap;\n  shops: V1Pod;\n}"), text("bad"));
  define(folder, "own", typed("{ pods: { metadata: { name: string; pads: V1Pod } }, nightly: Nightly }"), text("own"));
  const object = (type: string) => typed("{}").replace("Triggers<{}>", type);
  define(folder, "union", object("V1Pod | V1ConfigMap"), manifest("union"));
  const { status, output } = await validate(folder);
  const said = output.split("\n").filter((line) => line.startsWith("WF_TYPES_TRIGGER") && !line.includes("union"));
  expect(output).toMatch(
    /^WF_TYPES_TRIGGER \S*union\/handler\.ts:4:16: no trigger watches Pod, which the handler takes; \S*union\/function\.yaml:\d+ has configmap \(ConfigMap\)$/m,
  );
  const has = /; \S*bad\/function\.yaml:\d+ has .*pods \(Pod\), .*nightly \(a schedule\)$/;
  expect(said).toEqual([
    expect.stringMatching(
      /bad\/handler\.ts:5:3: the trigger nightly is a schedule, whose type is Scheduled, and not V1Secret; /,
    ),
    expect.stringMatching(/bad\/handler\.ts:6:3: the trigger pods watches Pod, and not ConfigMap; /),
    expect.stringMatching(/bad\/handler\.ts:7:3: the manifest has no trigger shops; /),
  ]);
  for (const line of said) expect(line).toMatch(has);
  expect(output).toMatch(/^2 valid, 4 faults$/m);
  expect(status).toBe(1);
});

test("a literal call without a permission is a warning with the rule to add, and none once it is added", async () => {
  const folder = folderOf({});
  const code = `export default async (_event: unknown, ctx: any) => {
  // ctx.kube.delete({ apiVersion: "v1", kind: "Pod" })
  await ctx.kube.get({ apiVersion: "v1", kind: "Secret", name: "token", namespace: "shop" });
  await ctx.kube.evict({ apiVersion: "v1", kind: "Pod", name: "p", namespace: _event });
  await ctx.kube.create({ apiVersion: "shop.example/v1", kind: "Shop", metadata: {} });
  let ref = { apiVersion: "v1", kind: "Node", name: "n" };
  await ctx.kube.get(ref);
};
`;
  define(folder, "f", code, manifest("f"));
  const warnings = (output: string) => output.split("\n").filter((line) => line.startsWith("warning: WF_RBAC_CALL"));
  const first = await validate(folder);
  const secret = '- { apiGroups: [""], resources: [secrets], verbs: [get], namespaces: [shop] }';
  const eviction = '- { apiGroups: [""], resources: [pods/eviction], verbs: [create] }';
  expect(warnings(first.output)).toEqual([
    expect.stringMatching(
      /f\/handler\.ts:3:13: kube\.get needs a permission that f does not have: get secrets in namespace "shop"; /,
    ),
    expect.stringMatching(
      /f\/handler\.ts:4:13: kube\.evict needs a permission that f does not have: create pods\/eviction; /,
    ),
  ]);
  expect(first.output).toContain(`add to its permissions: ${secret}`);
  expect(first.output).toContain(`add to its permissions: ${eviction}`);
  expect(first.status).toBe(0);
  define(folder, "f", code, manifest("f", `  permissions:\n    ${secret}\n    ${eviction}`));
  expect(warnings((await validate(folder)).output)).toEqual([]);
  const create = `export default (_event: unknown, ctx: any) =>
  ctx.kube.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" } });
`;
  const named = '- { apiGroups: [""], resources: [configmaps], verbs: [create], resourceNames: [x] }';
  define(folder, "f", create, manifest("f", `  permissions:\n    ${named}`));
  expect(warnings((await validate(folder)).output)).toEqual([expect.stringMatching(/kube\.create needs a permission/)]);
});

test("a misspelt kind of Kubernetes' own is a fault, and a resource a warning, with the near name, where no cluster is asked", async () => {
  const folder = folderOf({});
  const rule = "  permissions: [{ apiGroups: [''], resources: [configmap], verbs: [get] }]";
  define(folder, "f", undefined, manifest("f", rule, "{ apiVersion: v1, kind: Confgmap }"));
  define(folder, "other", undefined, manifest("other", "", "{ apiVersion: shop.example/v1, kind: Shp }"));
  const { status, output } = await validate(folder);
  expect(output).toMatch(
    /^WF_MANIFEST_NOT_BUILT_IN \S*f\/function\.yaml:7:\d+ spec\.triggers\[0\]\.watch\.kind: .*did you mean ConfigMap\?$/m,
  );
  expect(output).toMatch(/^warning: WF_MANIFEST_NOT_BUILT_IN .*resources\[0\]: .*did you mean configmaps\?$/m);
  expect(output).toMatch(/^1 valid, 1 fault, 1 warning$/m);
  expect(status).toBe(1);
});
