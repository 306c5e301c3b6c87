// The targets of backups, and the output of both commands.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { readBackup } from "../../runtime/journal/sqlite/backup-file.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { commandsOf } from "../readme/blocks.ts";
import { read } from "../readme/sections.ts";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";

// Each test runs the command line as a process.
vi.setConfig({ testTimeout: 60_000 });

async function dataFolder(): Promise<string> {
  const data = folderOf({});
  const store = new Checkpoint(new SqliteJournal({ folder: data }));
  await store.openView("copy", "settings", "/ConfigMap");
  await store.close(true);
  return data;
}

test("a backup goes into a folder under the time of day, and the oldest ones beyond --keep are deleted", async () => {
  const to = folderOf({ "watchfire-backup-20200101T000000Z.db": "old", "notes.txt": "" });
  const { status, stdout } = await watchfire(["backup", "--data", await dataFolder(), "--to", to, "--keep", "1"]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^\S+watchfire-backup-\d{8}T\d{6}Z\.db: 1 function from sqlite, \d+ KiB, \S+Z\n$/);
  const names = readdirSync(to);
  expect(names).toEqual(["notes.txt", expect.stringMatching(/^watchfire-backup-20[2-9].*Z\.db$/)]);
  expect(readBackup(join(to, names[1] ?? "")).note.place).toBe("sqlite");
});

test("a backup is the whole output of --to -", async () => {
  const { status, stdout, stderr } = await watchfire(["backup", "--data", await dataFolder(), "--to", "-"]);
  expect([status, stderr]).toEqual([0, expect.stringContaining("1 function from sqlite")]);
  expect(stdout.startsWith("SQLite format 3\u0000")).toBe(true);
});

test("a backup is sent to the URL of the environment, and no failure shows more of the URL than its host", async () => {
  let status = 200;
  const received: { method: string | undefined; body: Buffer }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ method: request.method, body: Buffer.concat(chunks) });
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const host = `127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
  const env = { WATCHFIRE_BACKUP_TO: `http://${host}/bucket/backup.db?X-Amz-Signature=planted` };
  const data = await dataFolder();
  try {
    const sent = await watchfire(["backup", "--data", data], env);
    expect([sent.status, sent.stdout]).toEqual([0, ""]);
    const file = join(folderOf({}), "backup.db");
    writeFileSync(file, received[0]?.body ?? "");
    expect([received[0]?.method, readBackup(file).note.place]).toEqual(["PUT", "sqlite"]);
    status = 403;
    const refused = await watchfire(["backup", "--data", data], env);
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/^WF_BACKUP_UPLOAD.*403.*127\.0\.0\.1/),
    ]);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const unreachable = await watchfire(["backup", "--data", data], env);
    expect([unreachable.status, unreachable.stderr]).toEqual([1, expect.stringMatching(/^WF_BACKUP_UPLOAD/)]);
    for (const { stdout, stderr } of [sent, refused, unreachable]) expect(stdout + stderr).not.toContain("planted");
  } finally {
    server.close();
  }
});

test("a restore says what it replaced, what was kept, and what is delivered again", async () => {
  const data = await dataFolder();
  const file = join(folderOf({}), "backup.db");
  await watchfire(["backup", "--data", data, "--to", file]);
  const { status, stdout } = await watchfire(["restore", "--from", file, "--data", data]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^restored 1 function into .* from the backup of \S+Z \(sqlite\): copy$/m);
  expect(stdout).toContain(join(data, "checkpoint.replaced.db"));
  expect(stdout).toContain("delivered again, flagged `redelivered`");
  expect(readFileSync(join(data, "checkpoint.db")).subarray(0, 15).toString()).toBe("SQLite format 3");
});

test("the commands of runtime/docs/disaster-recovery.md take a backup and restore it, as the page shows", async () => {
  const page = "runtime/docs/disaster-recovery.md";
  const folder = folderOf({});
  const store = new Checkpoint(new SqliteJournal({ folder: join(folder, ".watchfire") }));
  await store.openView("copy", "settings", "/ConfigMap");
  await store.close(true);
  const name = /watchfire-backup-\w+\.db/g;
  const said: string[] = [];
  for (const command of commandsOf(page)) {
    const [file = ""] = said.length === 0 ? [] : readdirSync(join(folder, "backups"));
    const words = command
      .replace(/^npx watchfire /, "")
      .replace(name, file)
      .split(" ");
    const { status, stdout } = await watchfire(words, {}, folder);
    expect(status, command).toBe(0);
    said.push(stdout);
  }
  const inGeneral = (text: string) =>
    text
      .replace(name, "NAME")
      .replace(/20\d\d-\S+Z/, "TIME")
      .replace(/\d+ KiB/, "SIZE");
  expect(said.map((text) => text.split("\n")[0]).map((line = "") => inGeneral(line))).toEqual([
    inGeneral(/^backups\/.*$/m.exec(read(page))?.[0] ?? ""),
    expect.stringMatching(/^restored 1 function into \.watchfire from the backup of TIME/),
  ]);
});

test("a restore without a file, and a backup to keep no number of, are usage errors", async () => {
  expect((await watchfire(["restore"])).stderr).toMatch(/^WF_CLI_USAGE: restore needs --from FILE/);
  expect((await watchfire(["backup", "--keep", "0"])).stderr).toMatch(/^WF_CLI_USAGE: --keep takes a number/);
});
