// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are placeholders of manifests
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";
import { define, manifest, write } from "./session.ts";

const handler = `export default async (event, ctx) => {
  const { name, namespace } = event.object.metadata;
  await ctx.kube.patch({ apiVersion: "v1", kind: "ConfigMap", name, namespace }, { data: { seen: ctx.env.WORD } });
  if (event.object.data?.post) await ctx.fetch("https://" + event.object.data?.post + "/", { method: "POST", body: name });
  if (event.object.data?.make) await ctx.kube.create({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace } });
};`;

const spec = `  permissions: [{ apiGroups: [""], resources: [configmaps], verbs: [patch] }]
  egress: [{ host: hooks.example.com, ports: [443] }]
  env: [{ name: WORD, value: "yes" }]
`;

const event = (data: Record<string, string>) => ({
  type: "Modified",
  object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "demo" }, data },
});

const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "a", namespace: "demo" } };

const patch = { call: "kube.patch", ref: { name: "a", namespace: "demo" }, patch: { data: { seen: "yes" } } };

/** A project whose function has these fixtures. */
function project(fixtures: Readonly<Record<string, unknown>>): string {
  const functions = join(folderOf({}), "functions");
  define(functions, "greet", handler, manifest("greet", spec));
  for (const [name, fixture] of Object.entries(fixtures)) {
    write(join(functions, "greet/events", name), typeof fixture === "string" ? fixture : JSON.stringify(fixture));
  }
  return functions;
}

const run = (functions: string, ...more: string[]) => watchfire(["test", "--functions", functions, ...more]);

describe("watchfire test", () => {
  test("runs each function's fixtures in the sandbox, on objects of their own, and passes where all is as expected", async () => {
    const post = { call: "fetch", url: "https://hooks.example.com/", method: "POST", body: "a" };
    const functions = project({
      "1-alone.json": event({}),
      "2-calls.json": { event: event({}), expect: { outcome: "ok", calls: [patch] } },
      "3-fetch.json": { event: event({ post: "hooks.example.com" }), expect: { calls: [patch, post] } },
      "4-env.json": {
        event: event({}),
        env: { WORD: "no" },
        expect: { calls: [{ call: "kube.patch", patch: { data: { seen: "no" } } }] },
      },
      "5-gone.json": {
        event: { ...event({}), type: "Deleted" },
        expect: { outcome: "failed", error: "NotFoundError", calls: [{ call: "kube.patch" }] },
      },
    });
    expect(await run(functions, "greet")).toMatchObject({ stdout: "5 passed, 0 failed\n", stderr: "", status: 0 });
  });

  test("keeps the objects of a fixture whose owners have other uids in the cluster, and the event's", async () => {
    const functions = join(folderOf({}), "functions");
    const owned = (name: string, owner: string) => ({
      ...{ apiVersion: "v1", kind: "ConfigMap" },
      metadata: { name, namespace: "demo", ownerReferences: [{ ...shop, name: owner, uid: `uid-of-${owner}` }] },
    });
    const shop = { apiVersion: "v1", kind: "ConfigMap" };
    const work = `export default async (event, { kube }) => {
      const ref = { apiVersion: "v1", kind: "ConfigMap", namespace: "demo" };
      const seen = (await kube.list(ref)).items.map(({ metadata }) => metadata.name).filter((name) => name.length === 1);
      await kube.patch({ ...ref, name: event.object.metadata.name }, { data: { seen: seen.join() } });
    };`;
    define(functions, "greet", work, manifest("greet", spec.replace("[patch]", "[list, patch]")));
    const root = { ...shop, metadata: { name: "a", namespace: "demo", uid: "uid-of-a" } };
    const fixture = {
      event: { type: "Added", object: owned("c", "b") },
      objects: [owned("b", "a"), root],
      expect: { calls: [{ call: "kube.patch", patch: { data: { seen: "a,b,c" } } }] },
    };
    write(join(functions, "greet/events/owned.json"), JSON.stringify(fixture));
    expect(await run(functions)).toMatchObject({ stdout: "1 passed, 0 failed\n", stderr: "", status: 0 });
  });

  test("takes a Secret's variable from .env, hides its value in a difference, and warns of one that is nowhere", async () => {
    const functions = project({ "1-local.json": { event: event({}), expect: { calls: [patch] } } });
    const from = (name: string) =>
      `{ name: ${name}, valueFrom: { secretKeyRef: { name: s, key: ${name.toLowerCase()} } } }`;
    const env = `  env: [${from("WORD")}, ${from("GONE")}]\n`;
    define(functions, "greet", handler, manifest("greet", spec.replace(/ {2}env: .*\n/, env)));
    write(join(functions, "../.env"), "WORD=yes\n");
    const file = join(functions, "greet/function.yaml");
    expect(await run(functions)).toMatchObject({
      stdout: "1 passed, 0 failed\n",
      stderr: expect.stringMatching(
        new RegExp(`^warning: ${file}: GONE is empty, since it is in neither \\S*\\.env nor the fixture\\n$`),
      ),
    });
    write(join(functions, "../.env"), "WORD=s3cr3t-w0rd\nGONE=\n");
    const { stdout, stderr, status } = await run(functions);
    expect({ stderr, status }).toEqual({ stderr: "", status: 1 });
    expect(stdout).toContain("1-local.json");
    expect(stdout).not.toContain("s3cr3t");
  });

  test("tells programs what passed and what differs, as JSON, as JUnit's XML and as GitHub's annotations", async () => {
    const functions = project({
      "1-well.json": event({}),
      "2-ill.json": { event: event({}), expect: { outcome: "failed" } },
    });
    const as = async (format: string) => {
      const { stdout, stderr, status } = await run(functions, "-o", format);
      expect([stderr, status]).toEqual(["", 1]);
      return stdout;
    };
    const answer = JSON.parse(await as("json"));
    expect(answer).toMatchObject({ passed: 1, failed: 1, faults: [] });
    expect(answer.fixtures[1]).toMatchObject({ function: "greet", differences: [{ what: "outcome", actual: "ok" }] });
    expect(await as("junit")).toMatch(
      /tests="2" failures="1"[\s\S]*2-ill.json">\n +<failure type="different" message="outcome: /,
    );
    expect(await as("github")).toMatch(
      /^::error file=.*2-ill\.json,title=different::outcome: expected failed, got ok$/m,
    );
    write(join(functions, "greet/events/3-refused.json"), JSON.stringify(event({ make: "it" })));
    for (const format of ["github", "junit"])
      expect(await as(format)).toMatch(/got failed: ForbiddenError: .*; add to its permissions: .*\}/);
  });

  test("begins with the fixture's entries of ctx.state, and compares those after the run, which a failure takes back", async () => {
    const functions = join(folderOf({}), "functions");
    const counting = `export default async (event, ctx) => {
      await ctx.state.set("n", (await ctx.state.get("n")) + 1);
      if (event.object.data?.bad) throw new Error("no");
    };`;
    define(functions, "greet", counting, manifest("greet", spec));
    const fixtures = [
      { event: event({}), state: { n: 9007199254740990 }, expect: { state: { n: 9007199254740991 } } },
      { event: event({ bad: "yes" }), state: { n: 1 }, expect: { outcome: "failed", state: { n: 1 } } },
      {
        event: event({}),
        state: { n: 1 },
        expect: { calls: [{ call: "state.get" }, { call: "state.set", value: 2 }] },
      },
      { event: event({}), state: { n: 1 }, expect: { state: { n: 1 } } },
    ];
    for (const [index, each] of fixtures.entries())
      write(join(functions, `greet/events/${index + 1}.json`), JSON.stringify(each));
    const { stdout, stderr } = await run(functions);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/4\.json +state\.n +1 +2\n/);
    expect(stdout).toContain("3 passed, 1 failed");
  });

  test("compares whole numbers by their digits, beyond 2^53 as well", async () => {
    const functions = join(folderOf({}), "functions");
    const write993 = `export default async ({ oldObject }, ctx) => {
      const patch = { id: oldObject.id };
      await ctx.kube.patch({ apiVersion: "v1", kind: "ConfigMap", name: "a", namespace: "demo" }, patch);
    };`;
    define(functions, "greet", write993, manifest("greet", spec));
    const fixture = (id: string) => {
      const { object } = event({});
      const given = { event: { type: "Modified", object, oldObject: { ...object, id: "ID" } } };
      const text = JSON.stringify({ ...given, expect: { calls: [{ call: "kube.patch", patch: { id: "EXPECTED" } }] } });
      return text.replace('"ID"', "9007199254740993").replace('"EXPECTED"', id);
    };
    write(join(functions, "greet/events/1.json"), fixture("9007199254740993"));
    write(join(functions, "greet/events/2.json"), fixture("9007199254740992"));
    const { stdout, status } = await run(functions);
    expect(status).toBe(1);
    expect(stdout).toMatch(/calls\[0\]\.patch\.id +9007199254740992 +9007199254740993/);
    expect(stdout).toContain("1 passed, 1 failed");
  });

  test("tells in a table what is not as expected, also what the manifest does not allow, and fails", async () => {
    const functions = project({
      "1-call.json": { event: event({}), expect: { calls: [{ ...patch, patch: { data: { seen: "maybe" } } }] } },
      "2-more.json": { event: event({}), expect: { calls: [] } },
      "3-permissions.json": event({ make: "it" }),
      "4-egress.json": event({ post: "elsewhere.example.com" }),
      "5-good.json": event({}),
    });
    const { status, stdout } = await run(functions);
    const [header, ...rows] = stdout.trimEnd().split("\n");
    expect(header).toMatch(/^FIXTURE +WHAT +EXPECTED +GOT$/);
    const remedies = rows.filter((row) => /^ {4}GOT: .*; .*\{ (apiGroups|host): .*\}$/.test(row));
    expect(remedies).toHaveLength(2);
    const cells = rows
      .filter((row) => !row.startsWith(" "))
      .slice(0, 4)
      .map((row) => row.replace(/^\S*events\//, "").split(/ {2,}/));
    expect(cells).toEqual([
      ["1-call.json", "calls[0].patch.data.seen", '"maybe"', '"yes"'],
      ["2-more.json", "calls", "none", "kube.patch"],
      [
        "3-permissions.json",
        "outcome",
        "ok",
        expect.stringMatching(/^failed: ForbiddenError: .*does not grant create/),
      ],
      [
        "4-egress.json",
        "outcome",
        "ok",
        expect.stringMatching(/^failed: \w+: .*does not allow elsewhere\.example\.com/),
      ],
    ]);
    expect(rows.at(-1)).toBe("1 passed, 4 failed");
    expect(status).toBe(1);
  });

  test.each([
    ["a file that is not JSON", { "a.json": "{" }, /WF_DEV_FIXTURE .*greet\/events\/a\.json: /],
    [
      "a field that is none",
      { "a.json": `{\n  "expects": {},\n  "event": {}\n}` },
      /WF_DEV_FIXTURE .*a\.json:2:3 expects: unknown field "expects"; did you mean expect\?/,
    ],
    ["an event that is misspelt", { "a.json": { evnt: 1 } }, / evnt: unknown field "evnt"; did you mean event\?/],
    ["an event without an object", { "a.json": { type: "Added" } }, /a\.json:1:1 object: the field is missing/],
    [
      "a type that is none",
      { "a.json": { event: { type: "Modifed" } } },
      /a\.json:1:18 event\.type: expected one of Added, Modified, Deleted, Scheduled, got "Modifed"; did you mean Modified\?/,
    ],
    [
      "a time that is none",
      { "a.json": { type: "Scheduled", scheduledFor: "tomorrow" } },
      /scheduledFor: it is not a time such as 2026-03-29T01:00:00Z, got "tomorrow"/,
    ],
    ["a batch of nothing", { "a.json": [] }, /a\.json:1:1: expected at least 1 items/],
    [
      "a trigger that is not there",
      { "a.json": { ...event({}), trigger: "setings" } },
      /a\.json:1:\d+ trigger: no trigger that watches has this name, got "setings"; there is: configmap/,
    ],
    [
      "an object of another kind than its trigger watches",
      { "a.json": { event: { ...event({}), trigger: "configmap", object: secret } } },
      /a\.json:1:\d+ event\.object: the trigger configmap watches v1 ConfigMap, got "v1 Secret"/,
    ],
    [
      "an object of a kind that no trigger watches",
      { "a.json": { type: "Added", object: secret } },
      /a\.json:1:\d+ object: no trigger of the function watches this kind, got "v1 Secret"; it watches: v1 ConfigMap/,
    ],
    [
      "a time in a function without a schedule",
      { "a.json": { type: "Scheduled", scheduledFor: "2026-03-29T01:00:00Z" } },
      /a\.json:1:\d+ type: the function has no schedule/,
    ],
    [
      "a call that is none",
      { "a.json": { event: event({}), expect: { calls: [{ call: "kube.get" }, { call: "patch" }] } } },
      /a\.json:1:\d+ expect\.calls\[1\]\.call: there is no such call, got "patch"; did you mean kube\.patch\?/,
    ],
  ])("is told of %s", async (_, fixtures, said) => {
    const { status, stderr } = await run(project(fixtures));
    expect(stderr).toMatch(said);
    expect(stderr).not.toMatch(/; correct the file: one of/);
    expect(status).toBe(1);
  });

  test("a function without a fixture is named with what to write, and fails only where it is asked for", async () => {
    const functions = project({});
    const said = /greet has no fixture; write \S*greet\/events\/NAME\.json, or: watchfire record greet\n$/;
    const all = await run(functions);
    expect(all).toMatchObject({ stdout: "0 passed, 0 failed\n", status: 0 });
    expect(all.stderr).toMatch(said);
    const named = await run(functions, "greet");
    expect(named.stderr).toMatch(/^WF_DEV_FIXTURE \S*functions: /);
    expect(named.stderr).toMatch(said);
    expect(named.status).toBe(1);
    define(functions, "other", undefined, manifest("other"));
    write(join(functions, "other/events/a.json"), JSON.stringify(event({})));
    const some = await run(functions);
    expect(some).toMatchObject({ stdout: "1 passed, 0 failed\n", status: 0 });
    expect(some.stderr).toMatch(said);
  });

  test("shows the faults of manifests if all are refused, also for a function that is named", async () => {
    const functions = project({ "a.json": event({}) });
    define(functions, "greet", handler, manifest("greet", "  delivery:\n    concurrency: ${workers}\n"));
    for (const named of [[], ["greet"]]) {
      const { status, stdout, stderr } = await run(functions, ...named);
      expect(stderr).toMatch(
        /^WF_MANIFEST_\w+ .*greet\/function\.yaml:9:18 spec\.delivery\.concurrency: .*, got "\$\{workers\}"; .*; if it is a placeholder, name its values with --values FILE\n$/,
      );
      expect(stdout).toBe("0 passed, 0 failed\n");
      expect(status).toBe(1);
    }
  });

  test("fills manifests with --values, and refuses a value that no manifest uses", async () => {
    const functions = project({ "a.json": { event: event({}), expect: { calls: [patch] } } });
    define(functions, "greet", handler, manifest("greet", spec.replace('"yes"', '"${word}"')));
    const values = join(functions, "../stage.yaml");
    write(values, 'word: "yes"\n');
    const filled = await run(functions, "--values", values);
    expect(filled).toMatchObject({ stdout: "1 passed, 0 failed\n", stderr: "", status: 0 });
    write(values, 'word: "yes"\nspare: 1\n');
    const { status, stderr } = await run(functions, "--values", values);
    expect(stderr).toMatch(/^WF_MANIFEST_VALUE_UNUSED .*stage\.yaml:2:1: no manifest has \$\{spare\}/);
    expect(status).toBe(1);
  });

  test("runs a reconciler, its cache, a schedule and a batch by their fixtures, and expects the time they ask for", async () => {
    const functions = join(folderOf({}), "functions");
    const team = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name, labels: { team: "a" } } });
    const reconciler = `import { defineReconciler, requeueAfter } from "@watchfire/sdk";
export default defineReconciler(async ({ key, object, causes }, ctx) => {
  if (!object) throw new Error(key.namespace + "/" + key.name + " is gone, by " + causes[0].type);
  const { items } = ctx.cache.list({ apiVersion: "v1", kind: "Namespace" });
  const data = { teams: items.map((item) => item.metadata.name).join(), by: causes[0].type };
  await ctx.kube.patch({ apiVersion: "v1", kind: "ConfigMap", ...key }, { data });
  return requeueAfter("30s");
});`;
    const grant = '  permissions: [{ apiGroups: [""], resources: [configmaps], verbs: [patch] }]\n';
    const kept = "  reads: [{ apiVersion: v1, kind: Namespace, labelSelector: { matchLabels: { team: a } } }]\n";
    define(functions, "level", reconciler, manifest("level", `  delivery: { mode: Reconcile }\n${grant}${kept}`));
    const fixtures = (name: string, files: Readonly<Record<string, unknown>>) => {
      for (const [file, fixture] of Object.entries(files))
        write(join(functions, name, "events", file), JSON.stringify(fixture));
    };
    const { object } = event({});
    const key = { namespace: "demo", name: "a" };
    const levelled = (by: string) => ({
      requeueAfter: "30s",
      calls: [{ call: "kube.patch", ref: key, patch: { data: { teams: "x,y", by } } }],
    });
    const objects = [team("x"), team("y")];
    fixtures("level", {
      "1-run.json": { run: { key, object, causes: [{ type: "Resync" }] }, objects, expect: levelled("Resync") },
      "2-gone.json": { run: { key }, expect: { outcome: "failed", error: "demo/a is gone, by Deleted" } },
      "3-event.json": { event: event({}), objects, expect: levelled("Modified") },
      "4-wrong.json": { run: { key, object }, objects, expect: { requeueAfter: "1m" } },
    });
    define(
      functions,
      "nightly",
      `export default (event, ctx) => ctx.fetch("https://hooks.example.com/" + event.scheduledFor + event.missed);`,
      manifest("nightly", "  egress: [{ host: hooks.example.com, ports: [443] }]\n").replace(
        /triggers:.*?(?=\n {2}\w)/s,
        "triggers: [{ name: nightly, schedule: { cron: 0 3 * * * } }]",
      ),
    );
    const url = "https://hooks.example.com/2026-03-29T01:00:00.000Ztrue";
    fixtures("nightly", {
      "tick.json": {
        event: { type: "Scheduled", scheduledFor: "2026-03-29T01:00:00Z", missed: true },
        expect: { calls: [{ call: "fetch", url }] },
      },
    });
    const batch = `export default (events) => ({ failed: events.filter((e) => e.object.data?.bad).map((e) => e.id) });`;
    define(functions, "batch", batch, manifest("batch", "  delivery: { batch: { maxSize: 10, maxWait: 1s } }\n"));
    fixtures("batch", {
      "1.json": {
        events: [{ ...event({}), id: "one" }, { ...event({ bad: "yes" }), id: "two" }, event({})],
        expect: { outcome: "failed", failed: ["two"] },
      },
      "2.json": [event({}), event({})],
    });
    const { stdout, stderr, status } = await run(functions);
    const rows = stdout.trimEnd().split("\n");
    expect(rows.slice(1, -2).map((row) => row.replace(/^\S*functions\//, "").split(/ {2,}/))).toEqual([
      ["level/events/4-wrong.json", "requeueAfter", "1m", "30000ms"],
    ]);
    expect([rows.at(-1), stderr, status]).toEqual(["6 passed, 1 failed", "", 1]);
  });

  test.each([
    ["a run", "run", { run: { key: { name: "a" } } }, "`run` is for reconcilers"],
    ["a batch", "events", [event({}), event({})], "`events` is for functions with `delivery.batch`"],
    ["both at once", "event and run", { event: event({}), run: { key: { name: "a" } } }, "one of `event`, `events`"],
  ])("refuses %s where the function takes one event", async (_, _name, fixture, said) => {
    const { status, stderr } = await run(project({ "a.json": fixture }));
    expect(stderr).toMatch(/^WF_DEV_FIXTURE .*a\.json/);
    expect(stderr).toContain(said);
    expect(status).toBe(1);
  });

  test("a fixture or a handler that is broken fails by itself, is told of once, and lets the others run", async () => {
    const functions = project({ "1.json": "{", "2.json": event({}), "3.json": { ...event({}), trigger: "nope" } });
    const broken = {
      syntax: "export default () => {",
      module: 'throw new Error("not today"); export default () => {};',
    };
    for (const [name, code] of Object.entries(broken)) {
      define(functions, name, code);
      for (const file of ["1.json", "2.json"]) write(join(functions, name, "events", file), JSON.stringify(event({})));
    }
    const { status, stdout, stderr } = await run(functions);
    expect(stdout).toBe("1 passed, 6 failed\n");
    expect(stderr.match(/^WF_\w+/gm)).toEqual([
      "WF_DEV_FIXTURE",
      "WF_DEV_FIXTURE",
      "WF_SANDBOX_LOAD",
      "WF_BUNDLE_SYNTAX",
    ]);
    expect(status).toBe(1);
  });

  test("a fixture says what is told: namespaces, selectors and events of its trigger do not choose", async () => {
    const functions = join(folderOf({}), "functions");
    const watch = "{ apiVersion: v1, kind: ConfigMap, namespaceSelector: { matchNames: [prod] }, events: [Deleted] }";
    define(functions, "elsewhere", undefined, manifest("elsewhere", "", watch));
    write(join(functions, "elsewhere/events/a.json"), JSON.stringify(event({})));
    expect(await run(functions)).toMatchObject({ stdout: "1 passed, 0 failed\n", stderr: "" });
  });

  test("refuses a reconciler's run of another kind, and a cause by a trigger that is not there", async () => {
    const functions = join(folderOf({}), "functions");
    define(functions, "level", undefined, manifest("level", "  delivery: { mode: Reconcile }\n"));
    const key = { name: "a", namespace: "demo" };
    const fixtures = {
      "1.json": { key, object: secret },
      "2.json": { run: { key, causes: [{ type: "Modified", trigger: "nope" }] } },
      "3.json": { ...event({}), trigger: "nope" },
      "4.json": { key, causes: [{ type: "Modified", trigger: "configmap" }] },
    };
    for (const [file, fixture] of Object.entries(fixtures))
      write(join(functions, "level/events", file), JSON.stringify(fixture));
    const { stdout, stderr } = await run(functions);
    expect(stderr.split("\n").map((line) => /json:\d+:\d+ (.*?);/.exec(line)?.[1])).toEqual([
      'object: the trigger configmap watches v1 ConfigMap, got "v1 Secret"',
      'run.causes[0].trigger: no trigger of the function has this name, got "nope"',
      'trigger: no trigger that watches has this name, got "nope"',
      undefined,
    ]);
    expect(stdout).toBe("1 passed, 3 failed\n");
  });

  test("is told of a function that is not there", async () => {
    const { status, stderr } = await run(project({ "a.json": event({}) }), "gret");
    expect(stderr).toContain('WF_CLI_USAGE: test takes functions of the folder, got "gret"; did you mean greet?');
    expect(status).toBe(1);
  });
});
