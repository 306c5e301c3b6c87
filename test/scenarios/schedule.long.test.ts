import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { watchfire } from "../cli/run.ts";
import { install } from "./cluster.ts";

const handler = `export default async (event, ctx) => {
  const { type, scheduledFor, missed, redelivered } = event;
  const isBare = !("object" in event) && !("resourceVersion" in event);
  ctx.log.info("told", { line: [type, isBare, missed ?? false, redelivered].join(" "), id: event.id, scheduledFor });
};`;

const ticking = async (schedule: object) => {
  const runtime = await install();
  await runtime.define("ticker", { watch: {}, spec: { triggers: [{ name: "tick", schedule }] } });
  await writeFile(join(runtime.functions, "ticker/handler.ts"), handler);
  await runtime.start();
  return runtime;
};

test("a function with a schedule alone runs in the sandbox at its times, and says when next", async () => {
  const runtime = await ticking({ every: "1s" });
  await runtime.hears("ticker", 2);
  expect(runtime.told("ticker")[0]).toBe("Scheduled true false false");
  const report = await runtime.function("ticker");
  expect(report).toMatchObject({ ready: true, triggers: [{ name: "tick", kind: "Schedule", state: "scheduled" }] });
  expect(Date.parse(report?.triggers[0]?.next ?? "")).toBeGreaterThan(0);
  expect(await runtime.metric("watchfire_events_total", { type: "Scheduled", outcome: "ok" })).toBeGreaterThan(0);
  const explained = await runtime.explain("ticker", "", "tick");
  expect(explained).toMatchObject({ trigger: "tick", next: expect.stringContaining("every 1s: runs at") });
  expect(explained.runs[0]).toMatchObject({ type: "Scheduled", outcome: "ok" });
});

test("a schedule is run by a command, and explained by its function's name alone", async () => {
  const runtime = await ticking({ cron: "0 3 1 1 *" });
  const command = (...args: string[]) => watchfire([...args, "--data", runtime.data]);
  const ran = await command("run", "ticker");
  expect([ran.stdout, ran.status]).toEqual([expect.stringContaining("ticker runs now"), 0]);
  await runtime.hears("ticker", 1);
  expect(runtime.told("ticker")).toEqual(["Scheduled true false false"]);
  expect((await command("logs", "ticker")).stdout).toContain("a run of the schedule was requested");
  await runtime.sees("its run ended", async () => (await command("runs", "ticker")).stdout.includes(" ok "));
  const { stdout } = await command("explain", "ticker");
  expect(stdout).toMatch(/trigger tick: Schedule tick\n +why: it did run: for /);
  expect(stdout).toMatch(/next: 0 3 1 1 \*: runs at \d+-01-01T03:00:00/);
  expect((await command("run", "ticker", "--trigger", "tock")).stderr).toContain("add --trigger tick");
});

test("over kills no time comes twice unflagged, and a changed schedule begins from now", async () => {
  const runtime = await ticking({ every: "1s" });
  for (let count = 1; count <= 3; count++) {
    await runtime.hears("ticker", count * 2);
    await runtime.kill();
    await runtime.start();
  }
  await runtime.hears("ticker", 8);
  const seen = runtime.lines.filter(({ msg }) => msg === "told").map(({ fields }) => fields);
  const first = seen.filter((fields) => fields?.line?.endsWith(" false")).map((fields) => fields?.id);
  expect(new Set(first).size).toBe(first.length);
  await runtime.define("ticker", { watch: {}, spec: { triggers: [{ name: "tick", schedule: { every: "1h" } }] } });
  await writeFile(join(runtime.functions, "ticker/handler.ts"), handler);
  await runtime.reload();
  const next = Date.parse((await runtime.function("ticker"))?.triggers[0]?.next ?? "");
  expect(next).toBeGreaterThan(Date.now());
});
