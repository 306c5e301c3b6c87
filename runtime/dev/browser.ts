import { spawn } from "node:child_process";
import { systemClock } from "../base/clock.ts";

/** An opener that has not failed within this time has started a browser, in milliseconds. */
const openMs = 2_000;

/** The program of each system that opens a URL in the browser. */
const openers: { readonly [platform in NodeJS.Platform]?: readonly [program: string, ...args: string[]] } = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
  linux: ["xdg-open"],
};

/** Opens a URL in the user's browser. Resolves with false if that is not possible. */
export function openBrowser(url: string): Promise<boolean> {
  const [program, ...args] = openers[process.platform] ?? [];
  if (program === undefined) return Promise.resolve(false);
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
    child.on("error", () => resolve(false));
    child.on("exit", (status) => resolve(status === 0));
    systemClock.after(openMs, () => resolve(true));
  });
}
