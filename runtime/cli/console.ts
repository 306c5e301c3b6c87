import { WatchfireError } from "../base/errors.ts";
import { loginLink } from "../console/access.ts";
import { loginCodeSchema } from "../console/schemas.ts";
import { openBrowser } from "../dev/browser.ts";
import { command } from "./command.ts";
import { runningRuntime, runtimeOptions } from "./running-runtime.ts";

export const openConsole = command({
  name: "console",
  summary: "opens the console of a running runtime in the browser, logged in by a link that works once",
  options: {
    ...runtimeOptions,
    print: { summary: "prints the link, and opens nothing" },
  },
  async run(invocation) {
    const runtime = runningRuntime(invocation);
    const { code } = await runtime.ask(loginCodeSchema, "api/login-codes", {}).catch((error: unknown) => {
      throw isAbsent(error) ? new WatchfireError("WF_CLI_REFUSED", absent) : error;
    });
    const link = loginLink(runtime.url, code);
    const isOpened = !invocation.given.has("print") && process.stdout.isTTY && (await openBrowser(link));
    process.stdout.write(isOpened ? `opened the console of ${runtime.url} in the browser\n` : `${link}\n`);
    return 0;
  },
});

const absent = {
  what: "the runtime serves no console",
  hint: "`watchfire dev` serves it without --no-console, `watchfire start` with --console",
};

/** A runtime without a console answers that there is no such path. */
const isAbsent = (error: unknown): boolean =>
  error instanceof WatchfireError && error.code === "WF_CLI_REFUSED" && error.detail.actual === "status 404";
