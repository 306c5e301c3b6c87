// An operator answers questions about a runtime that has faults, from its console alone, in a browser.
import { join } from "node:path";
import axe from "axe-core";
import { afterAll, expect, test } from "vitest";
import { readToken } from "../../runtime/observe/token-file.ts";
import { startBrowser } from "../console/browser.ts";
import { createTeam } from "../scenarios/cluster.ts";
import { CatalogFixture } from "./fixture.ts";

const browser = await startBrowser();
if ("absent" in browser) process.stderr.write(`${browser.absent}\n`);
afterAll(() => ("absent" in browser ? undefined : browser.close()));

const copyWork = (word: string) => `
  for (let n = 0; n < 20; n++)
    await ctx.kube.get({ apiVersion: "v1", kind: "ConfigMap", namespace: event.object.metadata.namespace, name: event.object.metadata.name });
  ctx.log.info("${word}");
  if (event.object.data.v === "bad") throw new TypeError("cannot copy " + event.object.metadata.name);`;

test.skipIf("absent" in browser)(
  "an operator who has never seen the console answers ten questions from it alone",
  { timeout: 180_000 },
  async () => {
    if ("absent" in browser) return;
    const team = await createTeam();
    const fixture = await CatalogFixture.create();
    const rights = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"], namespaces: [team.name] }];
    const copy = (word: string) => ({
      watch: team.watch({ labelSelector: { matchLabels: { copy: "yes" } } }),
      work: copyWork(word),
      spec: { permissions: rights, delivery: { retry: { maxAttempts: 1 } } },
    });
    await fixture.define("copy", copy("one"));
    await fixture.define("quick", { watch: team.watch() });
    await fixture.deploy("-m", "the first");
    await fixture.define("copy", copy("two"));
    await fixture.deploy("-m", "copy says two");
    const history = { bytes: 2 ** 24, ageMs: 86_400_000 };
    const runtime = await fixture.install({ console: true, history });
    await runtime.define("widgets", { watch: { apiVersion: "example.com/v1", kind: "Gadget" } });
    await runtime.open();
    await runtime.sees("copy runs", async () => (await runtime.function("copy"))?.ready === true);
    await team.make("ada", "good", { copy: "yes" });
    await team.make("eve", "bad", { copy: "yes" });
    await team.make("bob", "good");
    await runtime.sees("a dead letter", async () => (await runtime.function("copy"))?.deadLetters === 1);

    const headers = { authorization: `Bearer ${readToken(runtime.data)}` };
    const made = await fetch(`${runtime.url}/api/login-codes`, { method: "POST", headers });
    const { code } = (await made.json()) as { code: string };
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    const nav = page.getByRole("navigation", { name: "Pages" });
    const answers: string[] = [];
    const answer = (question: string, seen: string | null) => {
      const text = (seen ?? "").replace(/\s+/g, " ").trim();
      answers.push(`${question}\n  ${new URL(page.url()).pathname}: ${text.slice(0, 220)}`);
      return text;
    };
    await page.goto(`${runtime.url}/login#${code}`);

    // Which function is slow, and why?
    const functions = page.getByRole("table", { name: "Functions" });
    const row = functions.getByRole("row", { name: /^copy/ });
    await row.getByText(/\d ms/).first().waitFor();
    const tookOf = async (name: string) =>
      Number(
        /running \d+ \S+ (?:\S+ )?\d+ (?:< )?(\d+) ms/.exec(
          ((await functions.getByRole("row", { name: new RegExp(`^${name}`) }).innerText()) ?? "").replace(/\s+/g, " "),
        )?.[1],
      );
    expect(await tookOf("copy")).toBeGreaterThan((await tookOf("quick")) || 0);
    answer("which function is slow?", await row.innerText());
    await page.getByRole("link", { name: "copy", exact: true }).first().click();
    const time = page.getByRole("table", { name: /^Time of the last/ });
    await time.getByRole("row", { name: /kube\.get ConfigMap.*40 calls/ }).waitFor();
    answer("why is it slow?", await time.innerText());

    // What can this function do? What changed in the last deployment?
    const may = page.getByRole("table", { name: "Rights" });
    expect(answer("what can this function do?", await may.innerText())).toMatch(/configmaps get team-/);
    const revisions = page.getByRole("table", { name: "Revisions of the set default" });
    const last = revisions.getByRole("row", { name: /2 current/ });
    await last.waitFor();
    expect(answer("what changed in the last deployment?", await last.innerText())).toMatch(/changes it.*copy says two/);
    expect(await revisions.getByRole("row").nth(2).innerText()).toMatch(/adds it/);

    // Who paused this?
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Pause copy" }).click();
    const changes = page.getByRole("table", { name: "Who changed what" });
    const pause = changes.getByRole("row", { name: /pause/ });
    await pause.waitFor();
    expect(answer("who paused this?", await pause.innerText())).toContain("the data folder's token");
    for (const theme of ["dark", "light"]) {
      await page.getByLabel("Theme").selectOption(theme);
      for (const width of [390, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        const found = (await page.evaluate(`${axe.source}; axe.run()`)) as axe.AxeResults;
        expect(
          found.violations.map(({ id }) => id),
          `${theme} ${width}`,
        ).toEqual([]);
        const folder = process.env.SCREENSHOTS;
        if (folder)
          await page.screenshot({ path: join(folder, `function-deployed-${theme}-${width}.png`), fullPage: true });
      }
    }
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Resume copy" }).click();

    // Why was this ConfigMap not copied?
    await nav.getByRole("link", { name: "Explain" }).click();
    await page.getByLabel("Function").selectOption("copy");
    await page.getByLabel("Namespace").fill(team.name);
    await page.getByLabel("Name", { exact: true }).fill("bob");
    await page.getByRole("button", { name: "Explain" }).click();
    const why = page.getByRole("region", { name: "Answer of copy" });
    await why.getByRole("row", { name: /labelSelector does not pass/ }).waitFor();
    answer(
      "why was this ConfigMap not copied?",
      await why.getByRole("row", { name: /labelSelector does not pass/ }).innerText(),
    );

    // What did this run call?
    await nav.getByRole("link", { name: "Runs" }).click();
    await page
      .getByRole("row", { name: /copy.*\/ada/ })
      .getByRole("link")
      .first()
      .click();
    const calls = page.getByRole("table", { name: "Calls" });
    await calls.getByText("kube.get").first().waitFor();
    answer("what did this run call?", await calls.getByRole("row").nth(1).innerText());

    // What failed last night, and is it replayed?
    await nav.getByRole("link", { name: "Errors" }).click();
    await page.getByRole("link", { name: /cannot copy eve/ }).click();
    await page.getByRole("button", { name: "Replay all" }).waitFor();
    const group = await page.locator("main").innerText();
    expect(answer("what failed last night, and is it replayed?", group)).toMatch(/Replay all: 1 dead letter/);

    // Which source is behind?
    await nav.getByRole("link", { name: "Sources" }).click();
    const behind = page.getByRole("table", { name: "Sources" }).getByRole("row", { name: /Gadget/ });
    await behind.waitFor();
    expect(answer("which source is behind?", await behind.innerText())).toMatch(/missing/);

    // How full is the disk?
    await nav.getByRole("link", { name: "Configuration" }).click();
    const disk = page.getByRole("table", { name: "Disk" });
    expect(answer("how full is the disk?", await disk.innerText())).toMatch(/\d+ % full/);
    process.stderr.write(`${answers.join("\n")}\n`);
    await context.close();
  },
);
