import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { loginLink } from "../console/access.ts";
import { loginCodeSchema } from "../console/schemas.ts";
import { openBrowser } from "../dev/browser.ts";
import { command } from "./command.ts";
import { runtimeOptions, withRuntime } from "./running-runtime.ts";
import { stopSignal, untilAborted } from "./signals.ts";

export const openConsole = command({
  name: "console",
  summary: "opens the console of a running runtime in the browser, logged in by a link that works once",
  options: {
    ...runtimeOptions,
    print: { summary: "prints the link, and opens nothing" },
  },
  run: (invocation) =>
    withRuntime(invocation, async (runtime, { isForwarded }) => {
      const { code } = await runtime.ask(loginCodeSchema, "api/login-codes", {}).catch((error: unknown) => {
        throw isAbsent(error) ? new WatchfireError("WF_CLI_REFUSED", absent) : error;
      });
      const stop = isForwarded ? stopSignal(readEnvironment()) : undefined;
      const link = loginLink(runtime.url, code);
      const isOpened = !invocation.given.has("print") && process.stdout.isTTY && (await openBrowser(link));
      process.stdout.write(isOpened ? `opened the console of ${runtime.url} in the browser\n` : `${link}\n`);
      if (!stop) return 0;
      process.stderr.write("its port is forwarded until this command is stopped\n");
      await untilAborted(stop);
      return 0;
    }),
});

const absent = {
  what: "the runtime serves no console",
  hint: "`watchfire dev` serves it without --no-console, `watchfire start` with --console",
};

/** A runtime without a console answers that there is no such path. */
const isAbsent = (error: unknown): boolean =>
  error instanceof WatchfireError && error.code === "WF_CLI_REFUSED" && error.detail.actual === "status 404";
