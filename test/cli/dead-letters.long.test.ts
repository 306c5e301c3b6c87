import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { fleetLetters, slotPrefix } from "../../runtime/host/fleet/fleet-letters.ts";
import { emptyBatch, type NewDeadLetter } from "../../runtime/journal/batch.ts";
import { Checkpoint, deadLetterPageSize } from "../../runtime/journal/checkpoint.ts";
import { DeadLetters } from "../../runtime/journal/dead-letters.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { leaveAddress } from "../../runtime/observe/address-file.ts";
import type { ControlApi } from "../../runtime/observe/control-api.ts";
import type { DeadLetterService } from "../../runtime/observe/control-routes.ts";
import { serveEndpoints } from "../../runtime/observe/endpoints.ts";
import { keepToken } from "../../runtime/observe/token-file.ts";
import { gateOf } from "../control/access/gate-of.ts";
import { folderOf } from "../tools/folder.ts";
import { bin, type Result, watchfire } from "./run.ts";
import { define, manifest, Session } from "./session.ts";

const letter = (view: number, name: string): NewDeadLetter => ({
  view,
  function: name,
  trigger: "settings",
  namespace: "default",
  name: "ada",
  uid: "u",
  resourceVersion: resourceVersion("12"),
  type: "Added",
  id: "u/12/Added",
  flags: {},
  body: Buffer.from("{}"),
  oldBody: undefined,
  deletedBy: resourceVersion(""),
  receivedAt: 0,
  apiVersion: "v1",
  kind: "ConfigMap",
  attempts: 5,
  error: { name: "TypeError", message: "no", stack: "" },
  failedAt: 0,
});

/** A data folder with the letters 1 and 3 of `greet`, and 2 of `gone`, which no longer has a trigger. */
async function dataFolder(): Promise<string> {
  const folder = folderOf({});
  const store = new Checkpoint(new SqliteJournal({ folder }));
  const { id: home } = await store.openView("greet", "settings", "/ConfigMap");
  const { id: left } = await store.openView("gone", "settings", "/ConfigMap");
  await store.commit({
    ...emptyBatch,
    deadLetters: [letter(home, "greet"), letter(left, "gone"), letter(home, "greet")],
  });
  await store.retire([left], 1);
  await store.close(true);
  return folder;
}

/** A runtime's endpoints on a data folder. They end with the test. */
async function runtimeOn(folder: string): Promise<string> {
  const store = new Checkpoint(new SqliteJournal({ folder }));
  onTestFinished(() => store.close(true));
  return endpointsOn(folder, new DeadLetters(store));
}

/** The endpoints of a runtime with this data folder and these dead letters. They end with the test. */
async function endpointsOn(folder: string, letters: DeadLetterService): Promise<string> {
  const endpoints = await serveEndpoints("127.0.0.1", 0, {
    live: () => true,
    ready: () => true,
    obstacle: () => undefined,
    unsaved: () => undefined,
    clock: systemClock,
    status: () => ({ functions: [{ name: "greet" }] }),
    metrics: async () => "",
    gate: gateOf({ token: keepToken(folder) }).admit,
    deadLetters: () => letters,
    explain: async () => Promise.reject(new Error("not asked")),
    support: async () => Promise.reject(new Error("not asked")),
    functions: {} as ControlApi,
  });
  leaveAddress(folder, endpoints.url);
  onTestFinished(() => endpoints.close());
  return endpoints.url;
}

async function runtimeAndFolder(): Promise<string[]> {
  const folder = await dataFolder();
  return ["--url", await runtimeOn(folder), "--data", folder];
}

const run = (...args: string[]): Promise<Result> => watchfire(["dead-letters", ...args]);

it("a replay says which events wait on disk, since their function is not loaded, as text and as JSON", async () => {
  const folder = await dataFolder();
  const store = new Checkpoint(new SqliteJournal({ folder }));
  onTestFinished(() => store.close(true));
  const fault = { code: "WF_BUNDLE_SYNTAX", message: "WF_BUNDLE_SYNTAX: expected }\n  at handler.ts:3" } as const;
  await endpointsOn(folder, new DeadLetters(store, undefined, "", (name) => (name === "greet" ? fault : undefined)));
  expect(await run("replay", "1", "--data", folder)).toMatchObject({
    status: 0,
    stdout:
      "replayed 1; function greet is not loaded (WF_BUNDLE_SYNTAX: expected }): its events wait on disk until it loads\n",
  });
  const all = await run("replay", "--all", "-o", "json", "--data", folder);
  const waiting = [{ function: "greet", events: 1, ...fault }];
  expect(JSON.parse(all.stdout)).toEqual({ replayed: 1, left: 1, waiting });
  expect(all.stderr).toMatch(
    /^WF_CHECKPOINT_LETTER_HOMELESS: .*; put function gone, which is gone, back with trigger /,
  );
  expect(JSON.parse((await run("drop", "2", "-o", "json", "--data", folder)).stdout)).toEqual({ dropped: 1, left: 0 });
});

it("letters that cannot be replayed for one reason are reported in one line, with their number", async () => {
  const folder = folderOf({});
  const store = new Checkpoint(new SqliteJournal({ folder }));
  const { id } = await store.openView("gone", "settings", "/ConfigMap");
  await store.commit({ ...emptyBatch, deadLetters: Array.from({ length: 12 }, () => letter(id, "gone")) });
  await store.retire([id], 1);
  await store.close(true);
  const { stdout, stderr } = await run("replay", "--all", "--data", folder);
  expect(stdout).toBe("replayed 0, left 12\n");
  expect(stderr).toMatch(/^WF_CHECKPOINT_LETTER_HOMELESS: .*, got "1"; .* \(the same for 11 more\)\n$/);
});

it("an error that is too long for its row is whole below it, to the end of its remedy", async () => {
  const folder = folderOf({});
  const store = new Checkpoint(new SqliteJournal({ folder }));
  const { id } = await store.openView("greet", "settings", "/ConfigMap");
  const message = `${"it is refused ".repeat(20)};\n  add: - { verbs: [create] }`;
  const error = { name: "ForbiddenError", message, stack: "" };
  await store.commit({ ...emptyBatch, deadLetters: [{ ...letter(id, "greet"), error }, letter(id, "greet")] });
  await store.close(true);
  const [, row, whole, next] = (await run("list", "--data", folder)).stdout.split("\n");
  expect(row).toMatch(/^1 .*ForbiddenError: it is refused .*…$/);
  expect(whole).toBe(`    ERROR: ForbiddenError: ${message.replace(/\s+/g, " ")}`);
  expect(next).toMatch(/^2 .*TypeError: no$/);
});

describe.each([
  ["of a data folder", async () => ["--data", await dataFolder()]],
  ["of a runtime", async () => runtimeAndFolder()],
] as const)("the dead letters %s", (_where, reach) => {
  it("are listed, of all functions or of one", async () => {
    const at = await reach();
    const all = await run("list", ...at);
    expect(all.stdout.match(/^\d+ +\w+/gm)?.map((row) => row.split(/ +/))).toEqual([
      ["1", "greet"],
      ["2", "gone"],
      ["3", "greet"],
    ]);
    expect((await run("list", "--function", "gone", ...at)).stdout.match(/^\d+/gm)).toEqual(["2"]);
    expect((await run("list", "--function", "other", ...at)).stdout).toBe("no dead letters of function other\n");
  });

  it("are replayed all at once, but for those whose function is gone, which are told", async () => {
    const at = await reach();
    const { status, stdout, stderr } = await run("replay", "--all", ...at);
    expect(stdout).toBe("replayed 2, left 1\n");
    expect(stderr).toMatch(
      /^WF_CHECKPOINT_LETTER_HOMELESS: function gone has no trigger settings .*, got "2"; put .*\n$/,
    );
    expect(status).toBe(1);
    expect((await run("list", ...at)).stdout.match(/^\d+/gm)).toEqual(["2"]);
  });

  it("are replayed or dropped of one function alone", async () => {
    const at = await reach();
    expect(await run("replay", "--all", "--function", "greet", ...at)).toMatchObject({
      status: 0,
      stdout: "replayed 2\n",
    });
    expect(await run("drop", "--all", "--function", "gone", ...at)).toMatchObject({ status: 0, stdout: "dropped 1\n" });
    expect((await run("list", ...at)).stdout).toBe("no dead letters\n");
  });

  it("of a name that nothing has are no success, and the names that there are are told", async () => {
    const at = await reach();
    for (const action of ["drop", "replay"]) {
      const { status, stdout, stderr } = await run(action, "--all", "--function", "nope", ...at);
      expect(stderr).toMatch(
        /^WF_RUNTIME_NO_FUNCTION: no function of this name .*, got "nope"; there are .*\bgreet\n$/,
      );
      expect([status, stdout]).toEqual([1, ""]);
    }
    expect((await run("drop", "--all", "--function", "greet", ...at)).stdout).toBe("dropped 2\n");
    expect(await run("drop", "--all", "--function", "greet", ...at)).toMatchObject({
      status: 0,
      stdout: "dropped 0\n",
    });
  });

  it("of one that is not there it is said in one fault, with its own code and hint", async () => {
    const { status, stderr } = await run("show", "7", ...(await reach()));
    expect(stderr).toBe(
      'WF_CHECKPOINT_NO_DEAD_LETTER: no dead letter has this id, got "7"; see `watchfire dead-letters list`\n',
    );
    expect(status).toBe(1);
  });
});

/**
 * The data folder of a fleet's replica, without checkpoints. Slots 2, 5 and so on have `letters`, or one that is `gone`.
 */
async function replica(...letters: readonly (number | "gone")[]): Promise<string> {
  const slots = letters.map(async (count, index): Promise<[number, DeadLetters]> => {
    const store = new Checkpoint(new SqliteJournal({ folder: folderOf({}) }));
    onTestFinished(() => store.close(true));
    const { id } = await store.openView("greet", "settings", "/ConfigMap");
    const deadLetters = Array.from({ length: count === "gone" ? 1 : count }, () => letter(id, "greet"));
    await store.commit({ ...emptyBatch, deadLetters });
    if (count === "gone") await store.retire([id], 1);
    const slot = 2 + 3 * index;
    return [slot, new DeadLetters(store, undefined, slotPrefix(slot))];
  });
  const bySlot = new Map(await Promise.all(slots));
  const folder = folderOf({});
  await endpointsOn(
    folder,
    fleetLetters(
      () => bySlot,
      (slot) => (slot === 7 ? "slot 7 is with b" : undefined),
    ),
  );
  return folder;
}

describe("the dead letters of a fleet's replica", () => {
  it("are found by its data folder, though that has no positions, and are named by their slots", async () => {
    const at = ["--data", await replica(1, 2)];
    expect((await run("list", ...at)).stdout.match(/^\d+\S*/gm)).toEqual(["2-1", "5-1", "5-2"]);
    expect((await run("list", "--after", "2-1", ...at)).stdout.match(/^\d+\S*/gm)).toEqual(["5-1", "5-2"]);
    expect(await run("drop", "5-1", ...at)).toMatchObject({ stdout: "dropped 1\n", status: 0 });
    expect((await run("show", "5-1", ...at)).stderr).toContain("WF_CHECKPOINT_NO_DEAD_LETTER");
  });

  it("are dropped and replayed all at once, however many lists they fill", async () => {
    const at = ["--data", await replica(deadLetterPageSize - 1, 3)];
    const [page = "", end] = (await run("list", ...at)).stdout.split("there may be more: list --after ");
    expect([page.trimEnd().split("\n").length - 1, end]).toEqual([deadLetterPageSize, "5-1\n"]);
    expect(await run("replay", "--all", ...at)).toMatchObject({ stdout: `replayed ${deadLetterPageSize + 2}\n` });
    expect((await run("list", ...at)).stdout).toBe("no dead letters\n");
  });
});

describe("of the dead letters of several slots", () => {
  it("all are refused where one cannot be replayed, which is told by its id, and the others are then replayed", async () => {
    const at = ["--data", await replica(1, 1, "gone")];
    const all = (await run("list", ...at)).stdout;
    const { stderr, status } = await run("replay", "2-1", "8-1", "5-1", ...at);
    expect(stderr).toMatch(/^WF_CHECKPOINT_LETTER_HOMELESS: function greet has no trigger .*, got "8-1"; /);
    expect([status, (await run("list", ...at)).stdout]).toEqual([1, all]);
    expect(await run("replay", "--all", ...at)).toMatchObject({ stdout: "replayed 2, left 1\n", stderr });
  });

  it.each(["show", "drop", "replay"])(
    "one of a slot that another replica has is asked of that one: %s",
    async (action) => {
      const { stderr, status } = await run(action, "7-1", "--data", await replica(1));
      expect(stderr).toMatch(/^WF_LEASE_STANDBY: the dead letter's slot 7 is with b, got "7-1"; ask that replica/);
      expect(status).toBe(1);
    },
  );

  it.each(["9-1", "-1", "1", "2-1-1", "2-", "2-7"])("%s is none", async (id) => {
    const at = ["--data", await replica(1)];
    const { stderr } = await run(...at, "drop", "--", id);
    expect(stderr).toMatch(new RegExp(`^WF_CHECKPOINT_NO_DEAD_LETTER: .*, got "${id}"; `));
  });
});

describe("the dead letters' command", () => {
  it("asks the runtime that holds the folder, and tells of one that has left no address there", async () => {
    const folder = await dataFolder();
    await runtimeOn(folder);
    const { status, stdout } = await run("list", "--data", folder);
    expect(stdout).toMatch(/^1 /m);
    expect(status).toBe(0);
    expect(await run("drop", "1", "--data", folder)).toMatchObject({ stdout: "dropped 1\n", status: 0 });
    rmSync(join(folder, "url"));
    expect((await run("list", "--data", folder)).stderr).toContain(`WF_CHECKPOINT_LOCKED ${folder}/checkpoint.db: `);
  });

  it("is refused by a runtime whose data folder it cannot read", async () => {
    const url = await runtimeOn(await dataFolder());
    for (const action of [["list"], ["show", "1"], ["replay", "1"], ["drop", "--all"]]) {
      const { status, stderr } = await run(...action, "--url", url, "--data", folderOf({}));
      expect(stderr).toMatch(/^WF_OBSERVE_TOKEN: the request has no token; .*--data/);
      expect(status).toBe(1);
    }
  });

  it("finds the folder by WATCHFIRE_DATA where --data names none", async () => {
    const [, url = "", , folder = ""] = await runtimeAndFolder();
    const { stdout } = await watchfire(["dead-letters", "list", "--url", url], { WATCHFIRE_DATA: folder });
    expect(stdout).toMatch(/^1 /m);
  });

  it.each([
    [["list", "--url", "foo"], '--url takes an http or https URL, got "foo"; such as http://127.0.0.1:9464'],
    [["list", "--url", "localhost:9464"], "such as http://localhost:9464"],
    [["list", "--url", "ftp://localhost"], '--url takes an http or https URL, got "ftp://localhost"'],
    [["list", "--after", "x"], '--after takes a dead letter\'s id, got "x"'],
    [["show", "1", "2"], 'show takes one ID, got "1 2"'],
    [["show", "1", "--after", "2"], "--after is for list"],
    [["replay"], "replay takes 1 to 1000 IDs, or --all, got 0"],
    [["replay", "1", "--all"], 'replay takes IDs or --all, not both, got "1"'],
    [["replay", "1", "--function", "greet"], "--function is for list and --all"],
    [["resend", "1"], 'dead-letters takes list, show, replay or drop, got "resend"'],
    [[], "dead-letters takes list, show, replay or drop; run"],
  ])("is the user's mistake as %j", async (args, said) => {
    const { status, stderr } = await run(...args);
    expect(stderr).toContain(`WF_CLI_USAGE: `);
    expect(stderr).toContain(said);
    expect(status).toBe(1);
  });

  it("says so where nothing answers, or something that is no runtime", async () => {
    const server = createServer((_request, response) => response.end("<html>"));
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect((await run("list", "--url", url)).stderr).toContain(
      `WF_CLI_UNREACHABLE: the server at ${url} is not a Watchfire`,
    );
    await new Promise((done) => server.close(done));
    expect((await run("list", "--url", url)).stderr).toContain(`WF_CLI_UNREACHABLE: no runtime answers, got "${url}"`);
  });

  it("does not say that nothing was done of a runtime that was reached and did not answer", async () => {
    const server = createServer(({ socket }) => socket.destroy());
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { status, stderr } = await run("drop", "1", "--url", url);
    expect([status, stderr]).toEqual([
      1,
      `WF_CLI_UNREACHABLE: the runtime closed the connection before it answered, got "${url}"; it may have carried out the request, or still do so: check before you repeat it\n`,
    ]);
  });
});

it("that a runtime gives up is shown and replayed by the commands of its log, as they stand there", async () => {
  const folder = folderOf({});
  const watch = '{ apiVersion: v1, kind: Namespace, fieldSelector: "metadata.name=default" }';
  const handler = `import { PermanentError } from "@watchfire/sdk";
export default () => { throw new PermanentError("no"); };`;
  define(join(folder, "functions"), "fails", handler, manifest("fails", "", watch));
  const dev = new Session(["dev", "--data", "my data"], {}, folder);
  const given = await dev.says(/event given up .*/);
  const [, shows, replays] = /show=(.*?) {2}replay=(.*)/.exec(given) ?? [];
  const typed = async (command = "") => {
    const shell = `watchfire() { "${process.execPath}" "${bin}" "$@"; }; ${command}`;
    return (await promisify(execFile)("sh", ["-c", shell], { cwd: folder, env: { PATH: process.env.PATH } })).stdout;
  };
  expect(await typed(shows)).toContain("PermanentError");
  expect(await typed(replays)).toBe("replayed 1\n");
});
