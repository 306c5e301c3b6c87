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

  test("says which function it cannot run on fixtures, and runs the others", async () => {
    const functions = project({ "a.json": event({}) });
    const reads = `  reads: [{ apiVersion: v1, kind: Namespace }]`;
    define(functions, "cached", handler, manifest("cached", reads));
    write(join(functions, "cached/events/a.json"), JSON.stringify(event({})));
    const { status, stdout, stderr } = await run(functions);
    expect([status, stdout]).toEqual([0, "1 passed, 0 failed\n"]);
    expect(stderr).toMatch(/^not run: cached: its handler may read ctx\.cache/);
  });

  test("is told of a function that is not there", async () => {
    const { status, stderr } = await run(project({ "a.json": event({}) }), "gret");
    expect(stderr).toContain('WF_CLI_USAGE: test takes functions of the folder, got "gret"; did you mean greet?');
    expect(status).toBe(1);
  });
});
