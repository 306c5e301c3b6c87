import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { Supervisor } from "../sandbox/supervisor/supervisor.ts";
import { tuneEngine } from "../v8/engine.ts";
import { command } from "./command.ts";
import { stopSignal } from "./signals.ts";

export const executor = command({
  name: "executor",
  summary: "runs handlers for a `watchfire start --executor-socket`, in a container without token or network",
  options: {
    socket: { value: "PATH", summary: "the same path, on a volume that both containers mount" },
  },
  async run({ options }) {
    if (options.socket === undefined) {
      throw new WatchfireError("WF_CLI_USAGE", { what: "--socket is missing" });
    }
    tuneEngine();
    await new Supervisor(options.socket, systemClock).serve(stopSignal(readEnvironment()));
    return 0;
  },
});
