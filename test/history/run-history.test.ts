import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { endedRun, failure, historyOf, StandingClock } from "./collected.ts";

const minute = 60_000;
const ids = (runs: readonly { readonly object: string }[]) => runs.map(({ object }) => object.replace("team-a/", ""));

test("runs and log lines of an earlier process are there after a restart", async () => {
  const clock = new StandingClock();
  const folder = folderOf({});
  const first = historyOf({ folder, clock });
  first.history.runs.ended.push(endedRun({ outcome: failure, attempt: 1, redelivered: true }));
  first.history.lines.lines.push({
    number: clock.at * 1000,
    function: "greet",
    run: endedRun().id,
    line: '{"msg":"hello"}',
  });
  await first.history.close();
  const { history } = historyOf({ folder, clock });
  expect(await history.find({ limit: 10 })).toMatchObject([
    {
      function: "greet",
      object: "team-a/ada",
      kind: "ConfigMap",
      version: "12",
      attempt: 1,
      redelivered: true,
      outcome: "failed",
      waited: 20,
      took: 3,
      detail: { error: { name: "TypeError", message: "no greeting" } },
    },
  ]);
  expect(await history.linesOf("greet", endedRun().id)).toEqual([{ number: clock.at * 1000, line: '{"msg":"hello"}' }]);
  expect(await history.linesAfter(undefined, 0)).toHaveLength(1);
});

test("runs are found by function, outcome, object, trigger and time, newest first", async () => {
  const clock = new StandingClock();
  const { history } = historyOf({ clock });
  const at = (minutes: number) => clock.at - minutes * minute;
  history.runs.ended.push(
    endedRun({ endedAt: at(3), outcome: failure }, "one"),
    endedRun({ endedAt: at(2), function: "copy" }, "two"),
    endedRun({ endedAt: at(1), trigger: "other", outcome: { ...failure, type: "permanent" } }, "three"),
  );
  const found = async (question: object) => ids(await history.find({ limit: 10, ...question }));
  expect(await found({})).toEqual(["three", "two", "one"]);
  expect(await found({ limit: 2 })).toEqual(["three", "two"]);
  expect(await found({ function: "greet" })).toEqual(["three", "one"]);
  expect(await found({ outcome: "ok" })).toEqual(["two"]);
  expect(await found({ outcome: "failed" })).toEqual(["one"]);
  expect(await found({ outcome: "any-failure" })).toEqual(["three", "one"]);
  expect(await found({ object: "a/t" })).toEqual(["three", "two"]);
  expect(await found({ trigger: "other" })).toEqual(["three"]);
  expect(await found({ since: at(2) })).toEqual(["three", "two"]);
  expect(await found({ before: at(2) })).toEqual(["one"]);
  expect(await found({ id: endedRun({}, "two").id })).toEqual(["two"]);
  expect(await found({ object: "%" })).toEqual([]);
});

test("runs are found by their log lines, and those with a warning are marked", async () => {
  const clock = new StandingClock();
  const { history } = historyOf({ clock });
  for (const [index, level] of ["info", "warn", "error"].entries()) {
    history.runs.ended.push(endedRun({ endedAt: clock.at }, level));
    const line = JSON.stringify({ level, function: "greet", msg: "Stock is low", left: index });
    history.lines.lines.push({
      number: clock.at * 1000 + index,
      function: "greet",
      run: endedRun({}, level).id,
      line,
    });
  }
  const found = async (question: object) => ids(await history.find({ limit: 10, ...question }));
  expect(await found({ logged: "warning" })).toEqual(["error", "warn"]);
  expect(await found({ log: "stock is LOW" })).toEqual(["error", "warn", "info"]);
  expect(await found({ log: '"left":1', function: "greet" })).toEqual(["warn"]);
  expect(await found({ log: "left", function: "copy" })).toEqual([]);
  const all = await history.find({ limit: 10 });
  expect(ids([...(await history.warnedOf(all))])).toEqual(["error", "warn"]);
  expect((await history.warnedOf([])).size).toBe(0);
  expect(await found({ object: " configMAP team-a/INFO " })).toEqual(["info"]);
});

test("what is older than the age is neither shown nor kept", async () => {
  const clock = new StandingClock();
  const { history } = historyOf({ clock, limits: { bytes: 2 ** 21, ageMs: 10 * minute } });
  history.runs.ended.push(endedRun({ endedAt: clock.at - 11 * minute }, "old"), endedRun({ endedAt: clock.at }, "new"));
  expect(ids(await history.find({ limit: 10 }))).toEqual(["new"]);
  clock.at += 9 * minute;
  expect(ids(await history.find({ limit: 10 }))).toEqual(["new"]);
  clock.at += 2 * minute;
  history.runs.ended.push(endedRun({ endedAt: clock.at }, "newer"));
  await history.flush();
  clock.at -= 2 * minute;
  expect(ids(await history.find({ limit: 10 }))).toEqual(["newer"]);
});

test("the file stays within its bytes, and a busy function does not take the room of a quiet one", async () => {
  const clock = new StandingClock();
  const folder = folderOf({});
  const bytes = 2 ** 21;
  const { history, warnings } = historyOf({ folder, clock, limits: { bytes, ageMs: 86_400_000 } });
  history.runs.ended.push(endedRun({ function: "quiet", outcome: failure, endedAt: clock.at }, "first"));
  for (let batch = 0; batch < 200; batch++) {
    for (let n = 0; n < 20; n++) {
      history.runs.ended.push(endedRun({ outcome: failure, endedAt: clock.at + batch }, `b${batch}-${n}`));
      const line = JSON.stringify({ msg: "x".repeat(200) });
      history.lines.lines.push({ number: (clock.at + batch) * 1000 + n, function: "greet", run: undefined, line });
    }
    await history.flush();
    const size = ["", "-wal"].reduce((sum, end) => sum + statSync(join(folder, `history.db${end}`)).size, 0);
    expect(size).toBeLessThanOrEqual(bytes);
  }
  expect(ids(await history.find({ function: "quiet", limit: 10 }))).toEqual(["first"]);
  const busy = await history.find({ function: "greet", limit: 1000 });
  expect(busy[0]?.object).toBe("team-a/b199-19");
  expect(busy.length).toBeGreaterThan(100);
  expect(warnings).toEqual([]);
});

test("a smaller size makes an existing file smaller, and keeps the newest", async () => {
  const clock = new StandingClock();
  const folder = folderOf({});
  const large = historyOf({ folder, clock, limits: { bytes: 2 ** 23, ageMs: 86_400_000 } });
  for (let n = 0; n < 4_000; n++)
    large.history.runs.ended.push(endedRun({ outcome: failure, endedAt: clock.at + n }, `n${n}`));
  await large.history.close();
  expect(statSync(join(folder, "history.db")).size).toBeGreaterThan(2 ** 20);
  const small = historyOf({ folder, clock, limits: { bytes: 2 ** 20, ageMs: 86_400_000 } });
  expect((await small.history.find({ limit: 1 }))[0]?.object).toBe("team-a/n3999");
  await small.history.close();
  expect(statSync(join(folder, "history.db")).size).toBeLessThan(2 ** 20);
});

test("a file that is no database ends the history with one warning, and stays as it was", async () => {
  const folder = folderOf({ "history.db": "not a database, and longer than the header of one ".repeat(4) });
  const { history, warnings, dropped } = historyOf({ folder });
  const text = readFileSync(join(folder, "history.db"), "utf8");
  for (let n = 0; n < 3; n++) {
    history.runs.ended.push(endedRun());
    await history.flush();
  }
  expect(history.isOn).toBe(false);
  expect(await history.find({ limit: 10 })).toEqual([]);
  expect(warnings).toMatchObject([{ code: "WF_HISTORY_BROKEN", message: "the history of runs is off" }]);
  expect(dropped.failed).toBeGreaterThan(0);
  expect(readFileSync(join(folder, "history.db"), "utf8")).toBe(text);
});

test("a folder that takes no file ends the history with one warning", async () => {
  const folder = folderOf({ data: "a file, so nothing can be made in it" });
  const { history, warnings } = historyOf({ folder: join(folder, "data") });
  history.runs.ended.push(endedRun());
  await history.flush();
  await history.flush();
  expect(warnings).toHaveLength(1);
  expect(history.isOn).toBe(false);
});

test("a file that is damaged while it is used ends the history with one warning", async () => {
  const folder = folderOf({});
  const first = historyOf({ folder });
  for (let n = 0; n < 500; n++)
    first.history.runs.ended.push(endedRun({ endedAt: Date.now(), outcome: failure }, `n${n}`));
  await first.history.close();
  const file = join(folder, "history.db");
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(7, 8192));
  const { history, warnings } = historyOf({ folder });
  expect(await history.find({ limit: 10 })).toEqual([]);
  expect(warnings).toHaveLength(1);
});

test("a file of the first format keeps its runs", async () => {
  const folder = folderOf({});
  const file = join(folder, "history.db");
  const db = new DatabaseSync(file);
  db.exec(`CREATE TABLE runs (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, function TEXT NOT NULL, run TEXT NOT NULL,
    trigger TEXT NOT NULL, type TEXT NOT NULL, kind TEXT NOT NULL, object TEXT NOT NULL, version TEXT NOT NULL,
    attempt INTEGER NOT NULL, redelivered INTEGER NOT NULL, outcome TEXT NOT NULL, waited REAL, took REAL NOT NULL,
    called INTEGER NOT NULL, detail TEXT, extra TEXT) STRICT;
    PRAGMA user_version = 1`);
  const now = Date.now();
  db.prepare(
    "INSERT INTO runs VALUES (?, ?, 'greet', 'id', 't', 'Added', 'ConfigMap', 'a/b', '1', 1, 0, 'ok', 1, 2, 0, NULL, NULL)",
  ).run(now * 1000, now);
  db.close();
  const { history, warnings } = historyOf({ folder });
  history.runs.ended.push(endedRun({ endedAt: now + 1, cpuMs: 3 }));
  expect(await history.find({ limit: 10 })).toMatchObject([{ cpu: 3 }, { run: "id", cpu: null }]);
  expect(warnings).toEqual([]);
});

test("a file of a newer format is left as it is, and the reason says what to do", async () => {
  const folder = folderOf({});
  const file = join(folder, "history.db");
  const db = new DatabaseSync(file);
  db.exec("CREATE TABLE runs (other INTEGER); INSERT INTO runs VALUES (7); PRAGMA user_version = 1000");
  db.close();
  const { history, warnings } = historyOf({ folder });
  history.runs.ended.push(endedRun());
  await history.flush();
  expect(warnings).toMatchObject([{ code: "WF_HISTORY_NEWER" }]);
  expect(history.trouble?.hint).toContain("restart the runtime");
  expect(history.isOn).toBe(false);
  await history.close();
  const after = new DatabaseSync(file);
  expect(after.prepare("SELECT * FROM runs").all()).toEqual([{ other: 7 }]);
  expect(after.prepare("PRAGMA user_version").get()).toEqual({ user_version: 1000 });
  after.close();
});

test("while another process has the file, runs are dropped and counted, and it is tried again", async () => {
  const folder = folderOf({});
  const owner = historyOf({ folder });
  owner.history.runs.ended.push(endedRun());
  await owner.history.flush();
  const { history, dropped, warnings } = historyOf({ folder });
  history.runs.ended.push(endedRun({ endedAt: Date.now() }, "lost"));
  await history.flush();
  expect(dropped).toEqual({ full: 1 });
  await owner.history.close();
  history.runs.ended.push(endedRun({ endedAt: Date.now() }, "kept"));
  expect(ids(await history.find({ limit: 10 }))).toContain("kept");
  expect(warnings).toEqual([]);
});

test("the file is readable by its owner only", async () => {
  const folder = folderOf({});
  const { history } = historyOf({ folder });
  history.runs.ended.push(endedRun());
  await history.flush();
  for (const end of ["", "-wal"]) expect(statSync(join(folder, `history.db${end}`)).mode & 0o777).toBe(0o600);
});

test("a flush without a run makes no file", async () => {
  const folder = folderOf({});
  const { history } = historyOf({ folder, clock: new StandingClock() });
  await history.flush();
  expect(existsSync(join(folder, "history.db"))).toBe(false);
});

test("the thread is started before the first run", async () => {
  const folder = folderOf({});
  historyOf({ folder });
  await until("the file is open", 60_000, async () => existsSync(join(folder, "history.db")));
}, 70_000);

test("a history that is closed while its file is opened releases the file", async () => {
  const folder = folderOf({});
  const clock = new StandingClock();
  const timers: (() => void)[] = [];
  const due = { now: clock.now, monotonic: clock.monotonic, sinceBoot: clock.sinceBoot };
  const after = (_ms: number, work: () => void) => {
    timers.push(work);
    return { cancel: () => {} };
  };
  const first = historyOf({ folder, clock: { ...due, after } });
  timers[0]?.();
  await first.history.close();
  const { history, dropped } = historyOf({ folder, clock });
  history.runs.ended.push(endedRun({ endedAt: clock.at }));
  await history.flush();
  expect(dropped).toEqual({});
});

test("a call's target is redacted, and its calls are listed with what they did", async () => {
  const { history } = historyOf({ redact: (_, text) => text.replaceAll("hunter22", "[redacted]") });
  const calls = history.listOf(endedRun());
  calls?.calls.push({
    operation: "kube.patch",
    target: "ConfigMap team-b/hunter22",
    result: "ConflictError",
    status: 409,
    at: 1,
    durationMs: 2.34,
    sent: 5,
    received: 6,
  });
  history.runs.ended.push(endedRun({ calls, endedAt: Date.now() }));
  expect(await history.find({ limit: 1 })).toMatchObject([{ called: 1, extra: {} }]);
  const [run] = await history.find({ id: endedRun().id, limit: 1 });
  expect(run?.extra.calls).toEqual([
    {
      operation: "kube.patch",
      target: "ConfigMap team-b/[redacted]",
      result: "ConflictError",
      status: 409,
      at: 1,
      durationMs: 2.3,
      sent: 5,
      received: 6,
    },
  ]);
});

test("log lines of one answer are the newest, within its bounds", async () => {
  const clock = new StandingClock();
  const { history } = historyOf({ clock });
  const lineOf = (n: number, text: string) => ({
    number: clock.at * 1000 + n,
    function: "greet",
    run: undefined,
    line: text,
  });
  for (let n = 0; n < 5_100; n++) history.lines.lines.push(lineOf(n, `"${n}"`));
  const short = await history.linesAfter("greet", 0);
  expect([short.length, short[0]?.line, short.at(-1)?.line]).toEqual([5_000, '"100"', '"5099"']);
  for (let n = 0; n < 40; n++) history.lines.lines.push(lineOf(6_000 + n, "x".repeat(200_000)));
  const long = await history.linesAfter(undefined, 0);
  expect(long.reduce((sum, { line }) => sum + line.length, 0)).toBeLessThanOrEqual(4 * 2 ** 20);
  expect(long.at(-1)?.number).toBe(clock.at * 1000 + 6_039);
  expect(await history.linesAfter("greet", clock.at * 1000 + 6_037)).toHaveLength(2);
  expect(await history.linesAfter("other", 0)).toEqual([]);
});

test("lines about changes are there after a restart, newest first, as long as runs are, and no log line is one of them", async () => {
  const clock = new StandingClock();
  const folder = folderOf({});
  const limits = { bytes: 2 ** 21, ageMs: 10 * minute };
  const first = historyOf({ folder, clock, limits });
  for (let count = 0; count < 300; count++) first.history.keepChange((clock.at - 11 * minute) * 1000 + count, "old");
  await first.history.flush();
  first.history.keepChange(clock.at * 1000, '{"verb":"pause"}');
  first.history.keepChange(clock.at * 1000 + 1, '{"verb":"resume"}');
  await first.history.close();
  const { history } = historyOf({ folder, clock, limits });
  const lines = async () => (await history.keptChanges()).map(({ line }) => line);
  expect(await lines()).toEqual(['{"verb":"resume"}', '{"verb":"pause"}']);
  expect(await history.linesAfter(undefined, 0)).toEqual([]);
  clock.at += 11 * minute;
  history.keepChange(clock.at * 1000, "new");
  await history.flush();
  expect(await lines()).toEqual(["new"]);
});

test("an attempt whose process was killed is on record as interrupted, before the one that repeats it", async () => {
  const clock = new StandingClock();
  const folder = folderOf({});
  const { history } = historyOf({ folder, clock });
  const attempt = (over: object, name: string) => endedRun({ redelivered: true, ...over }, name);
  history.runs.ended.push(attempt({ attempt: 1, redelivered: false, outcome: failure }, "known"));
  await history.flush();
  history.runs.ended.push(
    attempt({ attempt: 2, outcome: failure }, "killed"),
    attempt({ attempt: 2 }, "known"),
    attempt({ attempt: 1 }, "first"),
    attempt({ attempt: 2, outcome: failure }, "twice"),
    attempt({ attempt: 3 }, "twice"),
  );
  await history.flush();
  history.runs.ended.push(attempt({ attempt: 3 }, "killed"));
  const found = (await history.find({ limit: 10, id: endedRun({}, "killed").id })).toReversed();
  expect(found.map((run) => [run.attempt, run.outcome, run.redelivered, run.waited])).toEqual([
    [1, "interrupted", false, null],
    [2, "failed", true, 20],
    [3, "ok", true, 20],
  ]);
  expect(found[0]?.at).toBeLessThanOrEqual((found[1]?.at ?? 0) - (found[1]?.took ?? 0));
  expect(ids(await history.find({ limit: 10, outcome: "interrupted" }))).toEqual(["twice", "killed"]);
  expect(await history.find({ limit: 10 })).toHaveLength(9);
});
