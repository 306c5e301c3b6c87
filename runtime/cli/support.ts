import { writeFileSync } from "node:fs";
import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean, systemReason } from "../base/wording.ts";
import { filesOf, supportReportSchema, versionsHere } from "../observe/support-report.ts";
import { command } from "./command.ts";
import { isInCluster, runtimeOptions, withRuntime } from "./running-runtime.ts";
import { dataFolderOf } from "./store-access.ts";

export const support = command({
  name: "support",
  summary: "writes a runtime's state into one file for somebody who helps: no code, no secrets, no objects",
  options: {
    ...runtimeOptions,
    to: { value: "FILE", summary: "the file; without it, watchfire-support-TIME.json in this folder" },
  },
  async run(invocation) {
    const { options, given } = invocation;
    const at = new Date(systemClock.now()).toISOString();
    const file = options.to ?? `watchfire-support-${at.replace(/[-:]|\.\d+/g, "")}.json`;
    const answer = await withRuntime(invocation, (runtime) => runtime.ask(supportReportSchema, "support")).catch(
      (error: unknown) => {
        if (!(error instanceof WatchfireError) || error.code === "WF_CLI_USAGE") throw error;
        return error;
      },
    );
    const isAway = answer instanceof WatchfireError;
    const runtime = isAway
      ? { unreachable: answer.message, files: isInCluster(invocation) ? [] : filesOf(folderOf({ options, given })) }
      : answer;
    write(file, { takenAt: at, command: versionsHere(), runtime });
    if (isAway) process.stderr.write(`${clean(answer.message)}\n`);
    process.stdout.write(`${clean(file)}\n`);
    return 0;
  },
});

const folderOf = (of: Parameters<typeof dataFolderOf>[0]): string => dataFolderOf(of, readEnvironment());

/** @throws WatchfireError WF_CLI_SUPPORT */
function write(file: string, report: object): void {
  try {
    writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600 });
  } catch (cause) {
    throw new WatchfireError("WF_CLI_SUPPORT", { what: systemReason(cause), place: { file }, cause });
  }
}
