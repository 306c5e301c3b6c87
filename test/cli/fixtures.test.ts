import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";
import { define, manifest, write } from "./session.ts";

const handler = `export default async (event, ctx) => {
  const { name, namespace } = event.object.metadata;
  await ctx.kube.patch({ apiVersion: "v1", kind: "ConfigMap", name, namespace }, { data: { seen: ctx.env.WORD } });
  if (event.object.data.post) await ctx.fetch("https://" + event.object.data.post + "/", { method: "POST", body: name });
  if (event.object.data.make) await ctx.kube.create({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace } });
};`;

const spec = `  permissions: [{ apiGroups: [""], resources: [configmaps], verbs: [patch] }]
  egress: [{ host: hooks.example.com, ports: [443] }]
  env: [{ name: WORD, value: "yes" }]
`;

const event = (data: Record<string, string>) => ({
  type: "Modified",
  object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "demo" }, data },
});

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
    const cells = rows.slice(0, 4).map((row) => row.replace(/^\S*events\//, "").split(/ {2,}/));
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
    ["a file that is no JSON", { "a.json": "{" }, /WF_DEV_FIXTURE .*greet\/events\/a\.json: /],
    ["a field that is none", { "a.json": { event: event({}), expects: {} } }, /WF_DEV_FIXTURE .*a\.json: .*expects/],
    ["an event without an object", { "a.json": { type: "Added" } }, /WF_DEV_FIXTURE .*a\.json event\.object: /],
    ["no fixture at all", {}, /WF_DEV_FIXTURE .*: no function has a fixture/],
  ])("is told of %s", async (_, fixtures, said) => {
    const { status, stderr } = await run(project(fixtures));
    expect(stderr).toMatch(said);
    expect(status).toBe(1);
  });

  test("runs a reconciler, its cache, a schedule and a batch by their fixtures, and expects the time they ask for", async () => {
    const functions = project({});
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
    const batch = `export default (events) => ({ failed: events.filter((e) => e.object.data.bad).map((e) => e.id) });`;
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

  test("is told of a function that is not there", async () => {
    const { status, stderr } = await run(project({ "a.json": event({}) }), "gret");
    expect(stderr).toContain('WF_CLI_USAGE: test takes functions of the folder, got "gret"; did you mean greet?');
    expect(status).toBe(1);
  });
});
