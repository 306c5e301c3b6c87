import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { diffOf } from "../../runtime/console/client/object-diff.ts";
import { deliveriesOf, spansOf } from "../../runtime/console/client/run-spans.ts";
import { describeRunDetail } from "../../runtime/console/run-detail.ts";
import { type RunEventParts, runEvent, saveRunEvent } from "../../runtime/console/run-event.ts";
import type { AttemptRow } from "../../runtime/console/schemas.ts";
import { endedRun } from "../history/collected.ts";
import { folderOf } from "../tools/folder.ts";
import { servedConsole } from "./served.ts";

const bodyOf = (object: object) => Buffer.from(JSON.stringify(object));
const before = { kind: "ConfigMap", data: { greeting: "hello", password: "hunter2" } };
const after = { kind: "ConfigMap", data: { greeting: "bye", password: "hunter3" } };

const partsOf = (over: Partial<RunEventParts> = {}): RunEventParts => ({
  history: {
    received: async (_, id) =>
      id === endedRun().id ? endedRun({ body: bodyOf(after), oldBody: bodyOf(before) }) : undefined,
  },
  letterOf: async () => undefined,
  show: async () => Promise.reject(new Error("not asked")),
  redact: (_, data) => data,
  ...over,
});

test("a recent run's objects are a fixture, without secrets", async () => {
  const found = await runEvent(partsOf(), "greet", endedRun().id);
  expect(found).toMatchObject({
    from: "memory",
    file: "modified-ada.json",
    fixture: {
      event: {
        id: endedRun().id,
        type: "Modified",
        object: { data: { greeting: "bye", password: "redacted" } },
        oldObject: { data: { greeting: "hello" } },
      },
    },
  });
  expect(JSON.stringify(found)).not.toContain("hunter");
  expect(await runEvent(partsOf(), "greet", "another")).toEqual({});
});

test("a key's run is a fixture with its causes, and a batch one with its events", async () => {
  const causes = [{ type: "Modified", trigger: "settings", namespace: "team-a", name: "ada" }] as never;
  const of = (over: Parameters<typeof endedRun>[0]) => partsOf({ history: { received: async () => endedRun(over) } });
  expect((await runEvent(of({ causes, body: bodyOf(after) }), "greet", "x")).fixture).toMatchObject({
    run: { key: { namespace: "team-a", name: "ada" }, causes },
  });
  const events = [{ id: "1", type: "Added", object: after }];
  const batch = await runEvent(of({ batch: ["1"], body: bodyOf(events) }), "greet", "x");
  expect([batch.file, batch.fixture]).toMatchObject(["batch-ada.json", { events: [{ id: "1" }] }]);
});

test("a fixture is written beside the manifest, under another name if that one is taken, and only by a runtime that may", async () => {
  const folder = folderOf({});
  const parts = partsOf({ fixtureFolder: () => join(folder, "events") });
  const files = [await saveRunEvent(parts, "greet", endedRun().id), await saveRunEvent(parts, "greet", endedRun().id)];
  expect(files).toEqual(["modified-ada.json", "modified-ada-2.json"].map((name) => join(folder, "events", name)));
  expect(JSON.parse(readFileSync(files[0] ?? "", "utf8")).event.object.data.greeting).toBe("bye");
  await expect(saveRunEvent(parts, "greet", "another")).rejects.toThrow("WF_CLI_FIXTURE");
  await expect(saveRunEvent(partsOf(), "greet", endedRun().id)).rejects.toThrow("WF_CLI_FIXTURE");
});

test("the event of a dead letter is shown from the letter; a cluster's runtime writes no file", async () => {
  const { ask, bearing } = await servedConsole();
  const path = "/api/runs/u%2F12%2FAdded";
  const { body } = await ask(`${path}/event?function=greet`, { headers: bearing });
  expect(JSON.parse(body)).toMatchObject({ from: "deadLetter", fixture: { event: { type: "Added", attempt: 2 } } });
  expect(body).not.toContain("aHVudGVyMg==");
  const write = { method: "POST", headers: bearing, body: { function: "greet" } };
  expect((await ask(`${path}/fixture`, write)).status).not.toBe(200);
  expect(existsSync("events")).toBe(false);
  expect((await ask(`${path}/fixture`, { method: "POST", body: { function: "greet" } })).status).toBe(401);
});

test("a diff names each field that differs, was added or was removed", () => {
  const old = { a: 1, gone: true, list: [1, 2], ports: [{ name: "web", port: 80 }, { name: "old" }] };
  const now = { a: 2, list: [1, 3, 4], ports: [{ name: "new" }, { name: "web", port: 81 }], "x/y": "z" };
  expect(diffOf(old, now)).toEqual([
    { path: ".a", before: 1, after: 2 },
    { path: ".list[1]", before: 2, after: 3 },
    { path: ".list[2]", after: 4 },
    { path: ".ports[name=new]", after: { name: "new" } },
    { path: ".ports[name=web].port", before: 80, after: 81 },
    { path: ".ports[name=old]", before: { name: "old" } },
    { path: '["x/y"]', after: "z" },
    { path: ".gone", before: true },
  ]);
  expect(diffOf(old, structuredClone(old))).toEqual([]);
  expect(diffOf(null, { a: 1 })).toEqual([{ path: "", before: null, after: { a: 1 } }]);
});

const endedRunRow = {
  ...{
    function: "greet",
    id: "x",
    trigger: "t",
    type: "Added",
    kind: "ConfigMap",
    object: "a/b",
    resourceVersion: "1",
  },
  durationMs: 100,
};

test("a timeline has the wait, each attempt with its calls, and the backoff between two", () => {
  const attempt = (over: Partial<AttemptRow>): AttemptRow => ({
    function: "greet",
    id: "x",
    trigger: "t",
    type: "Added",
    kind: "ConfigMap",
    object: "a/b",
    resourceVersion: "1",
    attempt: 1,
    outcome: "failed",
    durationMs: 100,
    at: new Date(1_000).toISOString(),
    ...over,
  });
  const call = { operation: "kube.get", target: "ConfigMap a/b", result: "ok", durationMs: 10, sent: 1, received: 1 };
  const spans = spansOf([
    attempt({ waitedMs: 50, listedCalls: [{ ...call, at: new Date(920).toISOString() }] }),
    attempt({ attempt: 2, outcome: "ok", at: new Date(2_000).toISOString(), durationMs: 200 }),
  ]);
  expect(spans.map(({ name, from, ms, isBad }) => [name, from, ms, isBad])).toEqual([
    ["Waiting", 0, 50, false],
    ["Attempt 1", 50, 100, true],
    ["kube.get ConfigMap a/b", 70, 10, false],
    ["Backoff", 150, 800, false],
    ["Attempt 2", 950, 200, false],
  ]);
  expect(spansOf([])).toEqual([]);
});

test("a replay is a separate delivery, after those before", () => {
  const attempt = (second: number, number: number, outcome: AttemptRow["outcome"]) =>
    ({ ...endedRunRow, attempt: number, outcome, at: new Date(second * 1_000).toISOString() }) as AttemptRow;
  const all = [
    attempt(10, 1, "failed"),
    attempt(1, 1, "failed"),
    attempt(2, 2, "failed"),
    attempt(11, 2, "interrupted"),
    attempt(12, 2, "ok"),
  ];
  const { attempts } = describeRunDetail({ function: "greet", id: "x" }, all, { lines: [] }, undefined, () => "now");
  expect(
    deliveriesOf(attempts).map((each) => each.map(({ at, attempt }) => [Date.parse(at) / 1_000, attempt])),
  ).toEqual([
    [
      [1, 1],
      [2, 2],
    ],
    [
      [10, 1],
      [11, 2],
      [12, 2],
    ],
  ]);
  expect(deliveriesOf([])).toEqual([]);
});

test("a run's error has the lines as they were, and says if the code has changed since", () => {
  const error = { name: "E", message: "x", stack: "E: x", frame: "> 3 | old" };
  const described = (present: string) =>
    describeRunDetail({ function: "greet", id: "x" }, [], { lines: [] }, error, () => present).error;
  expect(described("> 3 | new")).toMatchObject({ frame: "> 3 | old", codeChanged: true });
  expect(described("> 3 | old")?.codeChanged).toBeUndefined();
});
