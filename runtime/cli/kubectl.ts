import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import { findKubectl, kubectlPage } from "../dev/kubectl.ts";
import { silentServer } from "../dev/listening.ts";
import { command } from "./command.ts";
import { data } from "./options.ts";

/** Maximum number of characters kept of kubectl's output about an unreachable server. */
const keptCharacters = 64 * 1024;

export const kubectl = command({
  name: "kubectl",
  summary: "runs your kubectl on the embedded cluster of `watchfire dev`; WATCHFIRE_DATA names another data folder",
  operands: "ARGUMENT...",
  options: {},
  passes: true,
  async run({ operands }) {
    const { variables, dataFolder = data.default } = readEnvironment();
    const kubeconfig = join(dataFolder, "kubeconfig");
    if (!existsSync(kubeconfig)) {
      throw new WatchfireError("WF_CLI_KUBECTL", {
        what: "no embedded cluster has been here",
        place: { file: kubeconfig },
        hint: "start `watchfire dev` in this folder, or name its data folder by WATCHFIRE_DATA",
      });
    }
    const program = findKubectl(variables.PATH);
    if (program === undefined) throw new WatchfireError("WF_CLI_KUBECTL", { what: "no kubectl is on your PATH" });
    const silent = await silentServer(kubeconfig);
    const ended = await run(program, operands, { ...variables, KUBECONFIG: kubeconfig }, silent !== undefined);
    // Commands that contact no server, such as --help, succeed without one.
    if (silent !== undefined && ended.status !== 0 && ended.stderr.includes(silent)) {
      throw new WatchfireError("WF_CLI_KUBECTL", {
        what: `the embedded cluster of this folder is not running: nothing listens at ${silent}`,
        place: { file: kubeconfig },
        hint: "start it with `npx watchfire dev`, and leave that running",
      });
    }
    process.stderr.write(ended.stderr);
    return ended.status;
  },
});

/** kubectl's exit status, and its stderr if that was withheld. */
interface KubectlExit {
  readonly status: number;
  readonly stderr: string;
}

/** Runs a program. A signal that ends this process also ends the program. */
function run(
  program: string,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  keepsBack: boolean,
): Promise<KubectlExit> {
  const child = spawn(program, words, { env, stdio: ["inherit", "inherit", keepsBack ? "pipe" : "inherit"] });
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-keptCharacters);
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  return new Promise((done, fail) => {
    child.on("error", (cause) => {
      const what = `it cannot be run: ${systemReason(cause)}; ${kubectlPage} has others`;
      fail(new WatchfireError("WF_CLI_KUBECTL", { what, place: { file: program }, cause }));
    });
    // The exit status that shells use for a signal.
    child.on("close", (status, signal) =>
      done({ status: status ?? 128 + (signal ? constants.signals[signal] : 0), stderr }),
    );
  });
}
