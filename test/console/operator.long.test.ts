// The work of an operator, in a browser, over a console whose runtime is a stub.
import { join } from "node:path";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { tokenCaller } from "../../runtime/control/access/caller.ts";
import { startBrowser } from "./browser.ts";
import { servedConsole } from "./served.ts";

const browser = await startBrowser();
if ("absent" in browser) process.stderr.write(`${browser.absent}\n`);
afterAll(() => ("absent" in browser ? undefined : browser.close()));

/** A page that is logged in. */
async function open(options: Parameters<typeof servedConsole>[0] = {}) {
  if ("absent" in browser) throw new Error(browser.absent);
  const served = await servedConsole({ ...options, isWhole: true });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`${served.origin}/login#${served.access.newCode(tokenCaller)}`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true });
  return { ...served, page, button };
}

/** Waits for an expression of the page. The page's policy forbids `waitForFunction` to evaluate it again. */
const becomesTrue = (page: Page, expression: string) =>
  expect.poll(() => page.evaluate(expression), { timeout: 60_000 }).toBe(true);

/** Expects no fault of axe, and no part that is wider than the page, in both themes and widths. Saves pictures in the folder SCREENSHOTS. */
async function looksRight(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS;
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      const { violations } = (await page.evaluate(`${axe.source}; axe.run()`)) as axe.AxeResults;
      const faults = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      expect(faults, `${name}, ${colorScheme}, ${width}`).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth"), `${name}, ${width}`).toBeLessThanOrEqual(
        width,
      );
      if (folder) await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${width}.png`), fullPage: true });
    }
  }
}

const words = ["pause", "resume", "replay"];
/** Changes on record, newest first. */
const changesOf = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    at: new Date(Date.parse("2026-01-01T00:00:00Z") - n * 60_000).toISOString(),
    ...{ who: "nadia", verb: words[n % 3] ?? "", function: "greet", reason: `reason ${n}`, result: "done" },
  }));

const slow = { timeout: 180_000 };

test.skipIf("absent" in browser)(
  "a pause and its end are asked for with a reason, and the end shows who paused it, and why",
  slow,
  async () => {
    const pause = { at: "2026-01-01T00:00:03.000Z", who: "nadia", verb: "pause", function: "greet", result: "done" };
    const operations = { resume: async (name: string) => ({ changed: true, says: `${name} runs again` }) };
    const over = { paused: "command" } as const;
    const changes = [{ ...pause, reason: "the mail provider is down" }];
    const { page, button, origin, audit, reports } = await open({ operations, changes, over });
    await page.goto(`${origin}/functions/greet`);
    await page.getByText(/^Paused at .* by nadia: The mail provider is down\.$/).waitFor();
    await button("Resume").click();
    await page
      .getByRole("dialog")
      .getByText(/by nadia: The mail provider is down/)
      .waitFor();
    await looksRight(page, "resume");
    await page.keyboard.press("Escape");
    expect(audit.filter(({ verb }) => verb === "resume")).toEqual([]);
    await button("Resume").click();
    await page.getByLabel("Reason (optional)").fill("löst, 100 %");
    await button("Resume greet").click();
    await page.getByText("Greet runs again.").waitFor();
    expect(audit.at(-1)).toMatchObject({ verb: "resume", function: "greet", reason: "löst, 100 %" });
    const [report] = reports;
    if (report) reports[0] = { ...report, paused: undefined } as never;
    await page.reload();
    await button("Pause").click();
    await page.getByLabel("Reason (optional)").fill("a mend");
    await button("Pause greet").click();
    await page.getByText("Greet is paused.").waitFor();
    expect(audit.at(-1)).toMatchObject({ verb: "pause", reason: "a mend" });
  },
);

test.skipIf("absent" in browser)(
  "a run is redelivered after a question, and one whose object has changed leads to the question about the present state",
  slow,
  async () => {
    const asked: unknown[] = [];
    const redeliver = async (_: string, question: object) => {
      asked.push(question);
      if (!("run" in question)) return { queued: 1, skipped: [] };
      throw new WatchfireError("WF_RUNTIME_NOT_REDELIVERED", {
        what: "the object has changed since",
        hint: "ask again",
      });
    };
    const { page, button, origin, audit } = await open({ operations: { redeliver } });
    await page.goto(`${origin}/runs/${encodeURIComponent("u/12/Added")}?function=greet`);
    await button("Redeliver").click();
    await page.getByRole("dialog").getByText("its dead letter 1").waitFor();
    await looksRight(page, "redeliver-run");
    expect(asked).toEqual([]);
    await page.getByLabel("Reason (optional)").fill("try again");
    await button("Redeliver the event").click();
    await page.getByRole("dialog").getByText("ConfigMap default/ada as it is now").waitFor();
    await button("Redeliver the present state").click();
    await page.getByText("The event is delivered again.").waitFor();
    expect(asked).toEqual([{ run: "u/12/Added" }, { object: { namespace: "default", name: "ada" } }]);
    expect(audit.filter(({ verb }) => verb === "redeliver")[0]).toMatchObject({ reason: "try again" });
  },
);

test.skipIf("absent" in browser)(
  "the overview leads to all changes, and on a phone every column of a table is in its rows",
  slow,
  async () => {
    const { page, button, origin } = await open({ changes: changesOf(25) });
    await page.goto(origin);
    const changes = page.getByRole("table", { name: "Who changed what" });
    await changes.getByText("reason 9").waitFor();
    expect(await changes.getByText("reason 10").count()).toBe(0);
    await button("Show all 25 changes").click();
    await changes.getByText("reason 24").waitFor();
    expect(page.url()).toContain("changes=all");
    await looksRight(page, "overview");
    await page.setViewportSize({ width: 390, height: 800 });
    const seen = (head: string, text: string) =>
      page.locator(`td[data-head="${head}"]`, { hasText: text }).first().waitFor({ state: "visible" });
    await seen("Why", "reason 24");
    await seen("Oldest", "–");
    await page.goto(`${origin}/dead-letters`);
    await seen("Error", "TypeError: no 1");
    await seen("Attempts", "2");
    await looksRight(page, "dead-letters");
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto(`${origin}/runs`);
    await seen("Took", "3 ms");
    await seen("Error", "TypeError: no 1");
    await looksRight(page, "runs");
  },
);

test.skipIf("absent" in browser)(
  "a replay reports how many of its events went well, and how many failed again",
  slow,
  async () => {
    const first = {
      ...{
        function: "greet",
        id: "u/12/Added",
        trigger: "settings",
        type: "Added",
        kind: "ConfigMap",
        object: "default/ada",
      },
      ...{ resourceVersion: "12", attempt: 2, durationMs: 3, at: "2026-01-01T00:00:02.000Z", error: "TypeError: no 1" },
      outcome: "failed",
    } as const;
    const runs: (typeof first | (Omit<typeof first, "outcome"> & { outcome: "ok" }))[] = [first];
    const { page, button, origin, reports } = await open({ operations: { runs: async () => ({ runs }) } });
    await page.goto(`${origin}/dead-letters`);
    await page.getByRole("checkbox").check();
    await button("Replay").click();
    await page.route("**/api/dead-letters/replay", async (route) => {
      await route.fulfill({ json: { waiting: [] } });
      const [report] = reports;
      // After the answer, so that the page looks for it.
      if (report) reports[0] = { ...report, lastEvent: "2026-01-01T00:00:03.000Z" };
      runs.unshift({ ...first, attempt: 1, at: "2026-01-01T00:00:03.000Z" });
    });
    await button("Replay 1 dead letter").click();
    await page.getByText("1 dead letter replayed: 0 ok, 1 failed.").waitFor();
    expect(await page.locator(".result .bad").count()).toBe(1);
  },
);

test.skipIf("absent" in browser)(
  "dead letters are found, chosen together and shown, and a redelivery of all objects is chosen, not the default",
  slow,
  async () => {
    const { page, button, origin } = await open();
    await page.goto(`${origin}/dead-letters`);
    await page.getByLabel("Object or error contains").fill("default/eve");
    await page.getByText("Select all 0").waitFor();
    await page.getByLabel("Object or error contains").fill(" ConfigMap default/ADA TypeError ");
    await button("Select all 1").click();
    await page.getByText("1 selected.").waitFor();
    await button("Select none").click();
    await button("Show dead letter 1").click();
    await becomesTrue(page, 'document.activeElement?.textContent.includes("Dead letter 1")');
    await looksRight(page, "dead-letter");
    await page.goto(`${origin}/functions/greet`);
    await button("Redeliver").click();
    expect(await button("Redeliver the object").isDisabled()).toBe(true);
    await page.getByRole("dialog").getByLabel("All objects").check();
    expect(await button("Redeliver all objects").isEnabled()).toBe(true);
    await looksRight(page, "redeliver");
    await page.keyboard.press("Escape");
    await becomesTrue(page, 'document.activeElement?.textContent === "Redeliver"');
  },
);

test.skipIf("absent" in browser)(
  "a page that had no answer asks again, a wrong address and a wrong name are said to be so, and a page has the focus",
  slow,
  async () => {
    const { page, origin } = await open();
    // Without the stream of changes, which would ask for the page again.
    await page.route("**/api/events", (route) => route.abort());
    await page.route("**/api/config", (route) => route.abort());
    await page.goto(`${origin}/config`);
    await page.getByRole("alert").getByText("The runtime does not answer.").waitFor();
    await page.unroute("**/api/config");
    await page.getByRole("table", { name: "Versions" }).waitFor();
    await page.goto(`${origin}/nope`);
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await page.getByRole("link", { name: "Explain" }).click();
    await becomesTrue(page, 'document.activeElement?.id === "main"');
    await page.getByLabel("Name", { exact: true }).fill("a/b");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByRole("alert").getByText("This is not the name of an object.").waitFor();
    expect(await page.getByRole("alert").count()).toBe(1);
    await looksRight(page, "explain-invalid");
    await page.goto(`${origin}/runs/${encodeURIComponent("u/12/Added")}?function=greet`);
    await becomesTrue(page, 'document.title === "Run of greet – Watchfire"');
  },
);

test.skipIf("absent" in browser)("a name of 253 characters makes no page wider than its window", slow, async () => {
  const object = `${"n".repeat(60)}/${"long-".repeat(50)}ada`;
  const long = {
    ...{
      function: "greet",
      id: `${"u".repeat(250)}/12/Added`,
      trigger: "settings",
      type: "Added",
      kind: "ConfigMap",
      object,
    },
    ...{ resourceVersion: "12", attempt: 1, outcome: "failed" as const, durationMs: 3, at: "2026-01-01T00:00:02.000Z" },
    error: `TypeError: ${object}`,
  };
  const { page, origin } = await open({ operations: { runs: async () => ({ runs: [long] }) } });
  await page.goto(`${origin}/runs`);
  await page.getByRole("cell", { name: `ConfigMap ${object}` }).waitFor();
  await looksRight(page, "runs-long");
  const table = page.getByRole("region", { name: "Runs" });
  const beyond = await table.evaluate(
    (each: { scrollWidth: number; clientWidth: number }) => each.scrollWidth - each.clientWidth,
  );
  expect(beyond).toBeLessThanOrEqual(0);
  await page.goto(`${origin}/runs/${encodeURIComponent(long.id)}?function=greet`);
  await page.getByRole("table", { name: "Attempts" }).waitFor();
  await looksRight(page, "run-long");
});
