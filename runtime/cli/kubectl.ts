import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { readEnvironment } from "../config.ts";
import { findKubectl, kubectlPage } from "../dev/kubectl.ts";
import { WatchfireError } from "../errors.ts";
import { systemReason } from "../wording.ts";
import { command } from "./command.ts";
import { data } from "./options.ts";

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
    return run(program, operands, { ...variables, KUBECONFIG: kubeconfig });
  },
});

/** Gives its exit status. A signal that ends this process ends it too. */
function run(program: string, words: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(program, words, { env, stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  return new Promise((done, fail) => {
    child.on("error", (cause) => {
      const what = `it cannot be run: ${systemReason(cause)}; ${kubectlPage} has others`;
      fail(new WatchfireError("WF_CLI_KUBECTL", { what, place: { file: program }, cause }));
    });
    // A shell's way of telling a signal.
    child.on("close", (status, signal) => done(status ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
}
