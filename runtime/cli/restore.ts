import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import { type RestoredBackup, restoreFolder, restoreShared } from "../migrate/restore.ts";
import { command } from "./command.ts";
import { stopSignal } from "./signals.ts";
import { dataFolderOf, storeOptions, withCluster } from "./store-access.ts";
import { readStore } from "./store-limits.ts";

export const restore = command({
  name: "restore",
  summary: "replaces the checkpoints by a backup, while no runtime works with them",
  options: {
    ...storeOptions,
    from: { value: "FILE", summary: "a file that `watchfire backup` wrote" },
    yes: { summary: "replaces checkpoints that are newer than the backup, or that cannot be compared with it" },
  },
  async run({ options, given }) {
    const { from } = options;
    if (from === undefined) throw new WatchfireError("WF_CLI_USAGE", { what: "restore needs --from FILE" });
    const environment = readEnvironment();
    const store = readStore(options.store);
    const isForced = given.has("yes");
    if (store === "sqlite") {
      const folder = dataFolderOf({ options, given }, environment);
      process.stdout.write(describe(restoreFolder(folder, from, systemClock, isForced), folder));
      return 0;
    }
    const signal = stopSignal(environment);
    const restored = await withCluster(options, store, signal, async (access) => {
      const cluster = await access.recognise();
      return restoreShared(store, { ...access, cluster, isForced }, from, signal);
    });
    process.stdout.write(describe(restored, `the store ${store}`));
    return 0;
  },
});

/** Says what the next start does. */
function describe({ functions, takenAt, place, previous }: RestoredBackup, to: string): string {
  const names = functions.length > 0 ? `: ${functions.join(", ")}` : "";
  const lines = [
    `restored ${functions.length} function${functions.length === 1 ? "" : "s"} into ${to} from the backup of ${new Date(takenAt).toISOString()} (${place})${names}`,
    ...(previous === undefined ? [] : [`the previous file is ${previous}`]),
    "the next start watches every source from the backup's checkpoints, or lists it where the server's history does not reach back so far",
    "so no net change is missed; what has happened since the backup is delivered again, flagged `redelivered`",
    "a function that was deployed after the backup starts as a new one; letters that were replayed or dropped since are back",
  ];
  return `${lines.map(clean).join("\n")}\n`;
}
