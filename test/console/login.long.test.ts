// A browser in front of the console: the login by a token, and what a reader is shown.
import { join } from "node:path";
import axe from "axe-core";
import { afterAll, expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import type { AccountReviews } from "../../runtime/control/access/account-reviews.ts";
import { startBrowser } from "./browser.ts";
import { servedConsole } from "./served.ts";

const browser = await startBrowser();
if ("absent" in browser) process.stderr.write(`${browser.absent}\n`);
afterAll(() => ("absent" in browser ? undefined : browser.close()));

/** Accounts by their tokens, of which only `ada` may change something. */
const accounts = {
  callerOf: async (token: string) => {
    if (token !== "ada" && token !== "bob")
      throw new WatchfireError("WF_CONTROL_TOKEN", { what: "it is not accepted" });
    return { kind: "account", account: { name: token, uid: "", groups: [], extra: {} }, until: undefined };
  },
  may: async ({ account }: { account: { name: string } }, right: string) =>
    right !== "update" || account.name === "ada",
  refusal: ({ account }: { account: { name: string } }, right: string) =>
    new WatchfireError("WF_CONTROL_FORBIDDEN", { what: `${account.name} may not ${right} functions` }),
} as unknown as AccountReviews;

test.skipIf("absent" in browser)(
  "a token logs a browser in; a reader sees buttons disabled with the reason, a writer pauses",
  { timeout: 60_000 },
  async () => {
    if ("absent" in browser) throw new Error(browser.absent);
    const { origin, audit } = await servedConsole({ accounts, isWhole: true });
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    const shot = async (name: string) => {
      const folder = process.env.SCREENSHOTS;
      if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
    };
    const faults = async () => {
      const found = (await page.evaluate(`${axe.source}; axe.run()`)) as axe.AxeResults;
      return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
    };
    const login = async (token: string) => {
      await page.getByLabel(/^Or a token/).fill(token);
      await button("Log in").click();
    };

    await page.goto(`${origin}/functions/greet`);
    await login("another");
    await page.getByRole("alert").getByText("It is not accepted").waitFor();
    expect(await faults()).toEqual([]);
    await shot("login");
    await login("bob");
    await page.getByText("bob may not update functions", { exact: false }).waitFor();
    expect(await button("Pause").isDisabled()).toBe(true);
    expect(await faults()).toEqual([]);
    await shot("reader");
    expect(await page.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")).not.toContain("bob");
    const cookies = await context.cookies();
    expect(cookies).toMatchObject([{ httpOnly: true, sameSite: "Strict", path: "/" }]);

    await button("Log out").click();
    await login("ada");
    await button("Pause").click();
    await button("Pause greet").click();
    await page.getByText("Greet is paused").waitFor();
    expect(audit.at(-1)).toMatchObject({ who: "ada", session: 2, verb: "pause", function: "greet", result: "done" });
    await context.close();
  },
);
