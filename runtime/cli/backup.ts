import { createReadStream, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean, systemReason } from "../base/wording.ts";
import { leaseApi } from "../lease/lease-api.ts";
import { backUpFolder, backUpJournals, backupFile, backupsToDelete, type WrittenBackup } from "../migrate/backup.ts";
import { withStoredJournals } from "../migrate/read-store.ts";
import { command, type Invocation } from "./command.ts";
import { stopSignal } from "./signals.ts";
import { dataFolderOf, storeOptions, withCluster } from "./store-access.ts";
import { readStore } from "./store-limits.ts";

/** How long an upload may take, in milliseconds. */
const uploadMs = 30 * 60_000;

const options = {
  ...storeOptions,
  to: {
    value: "FILE",
    summary:
      "a file, a folder for a file named after the time, `-` for stdout, or a URL that takes a PUT; without it, WATCHFIRE_BACKUP_TO, then this folder",
  },
  keep: { value: "N", summary: "with a folder: deletes older backups in it, so that N remain" },
} as const;

export const backup = command({
  name: "backup",
  summary: "copies the checkpoints into one file, while the runtime works with them or not",
  options,
  async run(invocation) {
    const environment = readEnvironment();
    const to = invocation.options.to ?? environment.backupTo ?? "./";
    const keep = readKeep(invocation.options.keep);
    const signal = stopSignal(environment);
    if (/^https?:/i.test(to)) {
      await throughFile(invocation, signal, (written) => upload(written, to));
      return 0;
    }
    if (to === "-") {
      await throughFile(invocation, signal, ({ file }) =>
        pipeline(createReadStream(file), process.stdout, { end: false }),
      );
      return 0;
    }
    const file = backupFile(to, systemClock.now());
    const written = await take(invocation, file, signal);
    process.stdout.write(`${clean(describe(written))}\n`);
    if (keep !== undefined && file !== to) removeOld(dirname(file), keep);
    return 0;
  },
});

/** Takes a backup into `file`. */
async function take(
  { options: of, given }: Invocation<typeof options>,
  file: string,
  signal: AbortSignal,
): Promise<WrittenBackup> {
  const store = readStore(of.store);
  if (store === "sqlite")
    return backUpFolder(dataFolderOf({ options: of, given }, readEnvironment()), file, systemClock);
  return withCluster(of, store, signal, (access) => {
    const lease = leaseApi(access.transport, access.namespace, access.account);
    return withStoredJournals(store, { ...access, lease, cluster: undefined }, (found) => {
      const what = "the store has no checkpoints: no runtime has worked with it";
      if (!found) throw new WatchfireError("WF_CHECKPOINT_MISSING", { what });
      return backUpJournals(found, file, systemClock, signal);
    });
  });
}

/** Takes a backup into a temporary file for `work`. The summary goes to stderr. */
async function throughFile(
  invocation: Invocation<typeof options>,
  signal: AbortSignal,
  work: (written: WrittenBackup) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-backup-"));
  try {
    const written = await take(invocation, join(folder, "backup.db"), signal);
    await work(written);
    process.stderr.write(`${clean(describe(written))}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const describe = ({ file, bytes, functions, takenAt, place }: WrittenBackup): string =>
  `${file}: ${functions} function${functions === 1 ? "" : "s"} from ${place}, ${sizeOf(bytes)}, ${new Date(takenAt).toISOString()}`;

const sizeOf = (bytes: number): string =>
  bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;

/** Sends a backup. The URL is a credential, so no message contains more of it than the host. */
async function upload({ file, bytes }: WrittenBackup, url: string): Promise<void> {
  const target = URL.canParse(url) ? new URL(url) : undefined;
  if (!target) throw new WatchfireError("WF_CLI_USAGE", { what: "--to takes a file, a folder, `-` or a URL" });
  const refuse = (what: string, cause?: unknown) =>
    new WatchfireError("WF_BACKUP_UPLOAD", { what, actual: target.host, cause });
  let response: Response;
  try {
    response = await fetch(target, {
      method: "PUT",
      body: Readable.toWeb(createReadStream(file)) as ReadableStream,
      headers: { "content-type": "application/vnd.sqlite3", "content-length": String(bytes) },
      duplex: "half",
      redirect: "error",
      signal: AbortSignal.timeout(uploadMs),
    } as RequestInit);
  } catch (cause) {
    throw refuse(`it could not be sent: ${systemReason(cause instanceof Error ? (cause.cause ?? cause) : cause)}`);
  }
  await response.body?.cancel();
  if (!response.ok) throw refuse(`the server answered with status ${response.status}`);
}

function removeOld(folder: string, keep: number): void {
  for (const name of backupsToDelete(readdirSync(folder), keep, systemClock.now()))
    rmSync(join(folder, name), { recursive: true, force: true });
}

/** @throws WatchfireError WF_CLI_USAGE */
function readKeep(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text);
  throw new WatchfireError("WF_CLI_USAGE", { what: "--keep takes a number, 1 or more", actual: text });
}
