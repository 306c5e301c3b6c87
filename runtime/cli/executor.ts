import { WatchfireError } from "../errors.ts";
import { ExecutorWarden } from "../sandbox/executor-warden.ts";
import type { Command } from "./command.ts";
import { untilSignal } from "./signals.ts";

export const executor: Command = {
  name: "executor",
  summary: "runs handlers for a `watchfire start --executor-socket`, in a container without token or network",
  options: {
    socket: { value: "PATH", summary: "the same path, on a volume that both containers mount" },
  },
  async run({ options }) {
    if (options.socket === undefined) {
      throw new WatchfireError("WF_CLI_USAGE", {
        what: "--socket is missing",
        hint: "run `watchfire executor --help`",
      });
    }
    const stopping = new AbortController();
    void untilSignal().then(() => stopping.abort());
    await new ExecutorWarden(options.socket).serve(stopping.signal);
    return 0;
  },
};
