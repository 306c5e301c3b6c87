// The console of a fleet: two replicas, in separate processes, share functions; one of them is asked, in a browser.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import axe from "axe-core";
import { afterAll, expect, inject, test } from "vitest";
import { ReplicasFixture } from "../audit/replicas-fixture.ts";
import { startBrowser } from "../console/browser.ts";
import { admin, unique } from "../target/fixture.ts";
import { natsProgram } from "../tools/assets.ts";
import { NatsServer } from "../tools/nats-server.ts";
import type { Replica } from "../tools/replica.ts";
import { until } from "../tools/until.ts";

const { access } = inject("shared");
const slots = 6;
const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");
const browser = await startBrowser();
if ("absent" in browser) process.stderr.write(`${browser.absent}\n`);
afterAll(() => ("absent" in browser ? undefined : browser.close()));

interface Overview {
  readonly functions: readonly { readonly name: string }[];
  readonly replicas: readonly { readonly name: string; readonly answers: boolean }[];
  readonly elsewhere?: string;
}

async function ask<T>({ url, options }: Replica, path: string): Promise<T> {
  const token = (await readFile(join(options.data, "token"), "utf8")).trim();
  const answer = await fetch(`${url}/api/${path}`, { headers: { authorization: `Bearer ${token}` } });
  return (await answer.json()) as T;
}

const running = async (replica: Replica) =>
  ((await replica.status()).fleet?.slots ?? []).filter(({ state }) => state === "running").length;

test.skipIf(natsProgram === undefined)(
  "each replica of a fleet answers for all, and names one that was killed",
  { timeout: 180_000 },
  async () => {
    const nats = await NatsServer.make();
    await nats.start();
    await using on = await ReplicasFixture.set(admin, access, unique("fleet"), { shares: 4, shards: 1 });
    const start = () => on.start("nats", { fleet: { nats: nats.url, slots }, console: true });
    const [a, b] = [await start(), await start()];
    await until("the slots are balanced", 60_000, async () => {
      const counts = await Promise.all([a, b].map(running));
      return counts.every((count) => count === slots / 2);
    });
    on.write(40);
    await on.load(20);
    const names = ["recorder-0", "recorder-1", "recorder-2", "recorder-3"];
    for (const replica of [a, b]) {
      await until("it answers for all", 30_000, async () => {
        const { functions, replicas, elsewhere } = await ask<Overview>(replica, "overview");
        const all = functions.map(({ name }) => name).sort();
        return all.join() === names.join() && replicas.every(({ answers }) => answers) && elsewhere === undefined;
      });
      const { runs } = await ask<{ runs: { function: string }[] }>(replica, "runs?limit=1000");
      expect([...new Set(runs.map((run) => run.function))].sort()).toEqual(names);
      for (const name of names)
        expect(await ask(replica, `functions/${name}`)).toMatchObject({ function: { name, ready: true } });
    }
    expect((await b.log()).match(/"msg":"audit"/g)).toBeNull();

    if ("absent" in browser) return;
    const { stdout } = await promisify(execFile)(process.execPath, [
      bin,
      "console",
      "--print",
      "--data",
      a.options.data,
    ]);
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    await page.goto(/http:\S+\/login#\S+/.exec(stdout)?.[0] ?? "");
    const table = page.getByRole("table", { name: "Replicas" });
    await table.getByRole("row", { name: new RegExp(`${b.name}.*answers`) }).waitFor();
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
        if (folder) await page.screenshot({ path: join(folder, `fleet-${theme}-${width}.png`), fullPage: true });
      }
    }
    b.signal("SIGSTOP");
    await page.getByText(`${b.name} did not answer: no answer within 5 s`).waitFor({ timeout: 30_000 });
    await b.kill();
    await page.getByText(/A part of the fleet is not on these pages/).waitFor({ state: "hidden", timeout: 60_000 });
    await context.close();
    await nats.remove();
  },
);
