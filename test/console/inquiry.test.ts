import { expect, test } from "vitest";
import { attentionOf } from "../../runtime/console/attention.ts";
import { describeErrorGroup, groupErrors, withoutVariables } from "../../runtime/console/error-groups.ts";
import { eventWays } from "../../runtime/console/event-way.ts";
import { searchRuns } from "../../runtime/console/run-search.ts";
import { usersOf } from "../../runtime/console/source-users.ts";
import type { FunctionManifest } from "../../runtime/manifest/function.ts";
import type { RunsAnswer } from "../../runtime/observe/control-api.ts";
import { report } from "./served.ts";

const runAt = (second: number, over: Partial<RunsAnswer["runs"][number]> = {}): RunsAnswer["runs"][number] => ({
  function: "a",
  id: `id-${second}`,
  trigger: "t",
  type: "Added",
  kind: "ConfigMap",
  object: "default/ada",
  resourceVersion: "1",
  attempt: 1,
  outcome: "ok",
  durationMs: 1,
  at: timeAt(second),
  ...over,
});
const timeAt = (second: number) => new Date(second * 1000).toISOString();

test("the newest runs of all functions come first, and a function whose last event is too old is not asked", async () => {
  const runs: Record<string, RunsAnswer["runs"]> = {
    a: [runAt(9), runAt(1)],
    b: [runAt(8, { function: "b" })],
    c: [runAt(2)],
  };
  const asked: string[] = [];
  const reports = ["c", "a", "b", "idle"].map((name) => {
    const lastEvent = runs[name]?.[0]?.at;
    return { name, ...(lastEvent !== undefined && { lastEvent }) };
  });
  const found = await searchRuns(reports, { limit: 2 }, async (name) => {
    asked.push(name);
    return { runs: runs[name] ?? [] };
  });
  expect(found.runs.map((run) => [run.function, run.id])).toEqual([
    ["a", "id-9"],
    ["b", "id-8"],
  ]);
  expect(asked).toEqual(["a", "b"]);
});

test("runs are found by function, outcome, object, trigger and time", async () => {
  const runs = [runAt(5, { outcome: "failed" }), runAt(4, { object: "team/eve" }), runAt(3, { trigger: "other" })];
  const reports = [{ name: "a", lastEvent: timeAt(5) }];
  const ids = async (question: object) =>
    (await searchRuns(reports, { limit: 9, ...question }, async () => ({ runs }))).runs.map(({ id }) => id);
  expect(await ids({ outcome: "failed" })).toEqual(["id-5"]);
  expect(await ids({ object: "eve" })).toEqual(["id-4"]);
  expect(await ids({ object: "configmap TEAM/eve " })).toEqual(["id-4"]);
  expect(await ids({ trigger: "other" })).toEqual(["id-3"]);
  expect(await ids({ since: timeAt(4).replace(".000Z", "+00:00") })).toEqual(["id-5", "id-4"]);
  expect(await ids({ function: "b" })).toEqual([]);
});

test("numbers, quoted texts, UIDs and names of objects do not tell errors apart", () => {
  const one = 'cannot copy "a" of team-a/web, 1.5 s, 0a1b2c3d-0000-4000-8000-000000000001';
  const other = "cannot copy 'b' of team-b/api, 20 s, 0a1b2c3d-0000-4000-8000-000000000002";
  expect(withoutVariables(one)).toBe(withoutVariables(other));
  expect(withoutVariables("cannot greet eve-1 of team-a", "team-a/eve-1")).toBe(
    withoutVariables("cannot greet bob of team-b", "team-b/bob"),
  );
  expect(withoutVariables("total -5, it was -5")).toBe(withoutVariables("total -10, it was 10"));
  expect(withoutVariables("code E-5")).not.toBe(withoutVariables("code E5"));
  expect(withoutVariables("the web-eve is evening", "eve")).toBe("the web-eve is evening");
  expect(withoutVariables("cannot copy")).not.toBe(withoutVariables("cannot move"));
});

test("errors of one code, place and message are a group; the last seen comes first", () => {
  const stack = (line: number) => `E: x\n    at inner (node:fs:1:1)\n    at h (functions/f/handler.ts:${line}:1)`;
  const of = (run: string, second: number, over: object) => ({
    function: "f",
    run,
    at: timeAt(second),
    code: "E",
    message: `failed ${second}`,
    ...over,
  });
  const groups = groupErrors([
    of("1", 1, { stack: stack(3), deadLetter: "7" }),
    of("2", 2, { stack: stack(3), function: "g" }),
    of("3", 3, { stack: stack(4) }),
    of("4", 0, { code: "Other" }),
  ]);
  expect(groups).toMatchObject([
    { place: "functions/f/handler.ts:4:1", count: 1 },
    {
      place: "functions/f/handler.ts:3:1",
      count: 2,
      functions: ["f", "g"],
      deadLetters: ["7"],
      firstSeen: timeAt(1),
      lastRun: { function: "g", id: "2" },
    },
    { code: "Other", count: 1 },
  ]);
  expect(new Set(groups.map(({ fingerprint }) => fingerprint)).size).toBe(3);
});

test("a group has the lines as they were when it failed, says if the code has changed since, and names its last objects", () => {
  const stack = "E: x\n    at h (functions/f/handler.ts:3:1)";
  const of = (run: number, over: object = {}) => ({
    ...{ function: "f", run: String(run), at: timeAt(run), code: "E", message: "failed", stack },
    ...{ object: `shop/order-${run % 12}`, ...over },
  });
  const occurrences = Array.from({ length: 24 }, (_, run) => of(run, { frame: "> 3 | old" }));
  const [group] = groupErrors(occurrences, () => "> 3 | new");
  expect(group).toMatchObject({ frame: "> 3 | old", codeChanged: true, objects: { count: 12 } });
  expect(group?.objects.names).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2].map((n) => `shop/order-${n}`));
  expect(groupErrors(occurrences, () => "> 3 | old")[0]?.codeChanged).toBeUndefined();
  expect(groupErrors(occurrences)[0]?.codeChanged).toBeUndefined();
  expect(groupErrors([of(1)], () => "> 3 | new")[0]).toMatchObject({ frame: "> 3 | new" });
  expect(describeErrorGroup(occurrences, group?.fingerprint ?? "", 1)?.runs[0]).toMatchObject({
    object: "shop/order-11",
  });
});

test("a group's plot counts its occurrences in equal steps until now, and lists the newest", () => {
  const occurrences = Array.from({ length: 300 }, (_, n) => ({
    function: "f",
    run: String(n),
    at: timeAt(n),
    code: "E",
    message: `failed ${n}`,
  }));
  const [group] = groupErrors(occurrences);
  const found = describeErrorGroup(occurrences, group?.fingerprint ?? "", 480_000);
  expect(found?.runs.length).toBe(200);
  expect(found?.runs[0]?.id).toBe("299");
  const { from, stepMs, counts } = found?.plot ?? { from: "", stepMs: 0, counts: [] };
  expect([from, counts.length, counts.reduce((sum, count) => sum + count, 0)]).toEqual([timeAt(0), 48, 300]);
  expect(stepMs).toBeGreaterThanOrEqual(10_000);
  expect(counts[40]).toBe(0);
  expect(describeErrorGroup(occurrences, "another", 480_000)).toBeUndefined();
});

test("each step of an event's way has how many passed it and how many it filtered", () => {
  const manifest = {
    triggers: [
      {
        ...{ name: "settings", apiVersion: "v1", kind: "ConfigMap", namespaces: { type: "all" }, labelSelector: "" },
        ...{ fieldSelector: "", events: ["Added", "Modified"], changedFields: [["data"]] },
        matchConditions: [{ name: "has-data", expression: "size(object.data) > 0" }],
      },
    ],
    schedules: [],
    delivery: { mode: "All", concurrency: 4, timeoutMs: 1_000, retry: { maxAttempts: 1 }, onFailure: "DeadLetter" },
  } as unknown as FunctionManifest;
  const last = timeAt(0);
  const filtered = [
    { trigger: "settings", why: "events", count: 10, last },
    { trigger: "settings", why: "changedFields", count: 20, last },
    { trigger: "settings", why: "condition", condition: "has-data", count: 5, last },
    { trigger: "settings", why: "lastAnswer", count: 2, last },
  ];
  // Three were filtered before the function was last loaded.
  const outcomes = [
    { trigger: "settings", outcome: "ok", count: 60 },
    { trigger: "settings", outcome: "filtered", count: 40 },
  ];
  const [way] = eventWays(manifest, filtered, outcomes);
  expect(way?.steps.map(({ name, passed, heldBack }) => [name, passed, heldBack])).toEqual([
    ["kind", 97, undefined],
    ["namespaces", 97, undefined],
    ["events", 87, 10],
    ["changedFields", 67, 20],
    ["condition has-data", 62, 5],
    ["deletion", 60, 2],
    ["handler", 60, undefined],
  ]);
});

test("a history that is off is a warning that says what to do", () => {
  const history = { reason: "WF_HISTORY_BROKEN", message: "no room" };
  const [found] = attentionOf({ sandbox: {}, functions: [], history });
  expect(found).toMatchObject({ severity: "warn", text: "no room" });
  expect(found?.todo).toContain("restart the runtime");
});

test("what runs nothing comes first, what passes by itself is left out, and all says what to do", () => {
  const quiet = { ...report, deadLetters: 0 };
  const found = attentionOf({
    sandbox: { reason: "WF_SANDBOX_EXECUTOR", message: "no executor" },
    functions: [
      { ...quiet, name: "starting", ready: false, reason: "Starting" },
      report,
      { ...quiet, name: "refused", ready: false, reason: "ManifestRefused", message: "line 3" },
      { ...quiet, name: "stopped", reason: "Paused", paused: "command" },
      { ...quiet, name: "meant", reason: "Paused", paused: "manifest" },
    ],
  });
  expect(found.map(({ severity, title }) => [severity, title])).toEqual([
    ["bad", "No executor can be started, so no handler runs"],
    ["bad", "refused does not run: ManifestRefused"],
    ["warn", "stopped is paused"],
    ["warn", "greet has a dead letter"],
  ]);
  expect(found.every(({ todo }) => todo.length > 0)).toBe(true);
  expect(attentionOf({ sandbox: {}, functions: [quiet] })).toEqual([]);
});

test("a source is shared by the functions whose triggers or reads choose it", () => {
  const selection = {
    ...{ apiVersion: "v1", kind: "Secret", labelSelector: "app=web", fieldSelector: "type=Opaque" },
    namespaces: { type: "names", names: ["team-a"] },
  };
  const manifests = [
    { name: "by-trigger", triggers: [selection], reads: [] },
    { name: "by-read", triggers: [], reads: [{ ...selection, namespaces: { type: "all" } }] },
    { name: "of-another-label", triggers: [{ ...selection, labelSelector: "" }], reads: [] },
    { name: "of-any-type", triggers: [{ ...selection, fieldSelector: "" }], reads: [] },
    { name: "of-another-place", triggers: [{ ...selection, namespaces: { type: "names", names: ["b"] } }], reads: [] },
  ] as unknown as FunctionManifest[];
  const source = { apiVersion: "v1", kind: "Secret", namespace: "team-a", labelSelector: "app=web" };
  const fieldSelector = "metadata.name!=watchfire-checkpoint,type=Opaque";
  expect(usersOf({ ...source, fieldSelector }, manifests)).toEqual(["by-read", "by-trigger"]);
  expect(usersOf({ ...source, fieldSelector: "metadata.name!=watchfire-checkpoint" }, manifests)).toEqual([
    "of-any-type",
  ]);
  expect(usersOf({ ...source, kind: "Pod" }, manifests)).toEqual([]);
});

test("the name of an occurrence's own object does not tell its group apart", () => {
  const of = (name: string) => ({
    ...{ function: "f", run: name, at: timeAt(1), code: "E", message: `cannot greet ${name}` },
    object: `team-a/${name}`,
  });
  expect(groupErrors([of("eve"), of("bob")])).toMatchObject([{ count: 2 }]);
});
