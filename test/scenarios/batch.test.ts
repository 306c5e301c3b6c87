import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTeam, install } from "./cluster.ts";

const handler = `export default async (events, ctx) => {
  for (const { object, attempt } of events) ctx.log.info("told", { line: object.metadata.name + " of " + events.length });
  if (events.some(({ object }) => object.metadata.name === "poison")) throw new Error("poison");
};`;

test("a whole runtime hands over what comes together in one call, and gives up the poison alone", async () => {
  const team = await createTeam();
  const runtime = await install();
  for (const name of ["a", "b", "poison", "c"]) await team.make(name);
  const retry = { maxAttempts: 1 };
  const delivery = { batch: { maxSize: 4, maxWait: "10s" }, retry };
  await runtime.define("batches", { watch: team.watch(), spec: { delivery } });
  await writeFile(join(runtime.functions, "batches/handler.ts"), handler);
  await runtime.start();
  await runtime.sees("the poison is given up", async () => (await runtime.deadLetters()).length === 1);
  await runtime.quiet();
  expect((await runtime.deadLetters()).map(({ name }) => name)).toEqual(["poison"]);
  expect(runtime.told("batches")[0]).toMatch(/ of 4$/);
  expect(runtime.told("batches").filter((line) => line.endsWith(" of 1")).length).toBeGreaterThan(0);
  expect(await runtime.metric("watchfire_events_total", { outcome: "ok" })).toBe(3);
});

test("a batch that was under way at a kill comes again, each event of it flagged", async () => {
  const team = await createTeam();
  const runtime = await install();
  for (const name of ["a", "b"]) await team.make(name);
  const delivery = { batch: { maxSize: 2, maxWait: "10s" } };
  await runtime.define("held", { watch: team.watch(), spec: { delivery } });
  const holding = `export default async (events, ctx) => {
    for (const { object, redelivered } of events) ctx.log.info("told", { line: object.metadata.name + " " + redelivered });
    if (!events[0].redelivered) await new Promise(() => {});
  };`;
  await writeFile(join(runtime.functions, "held/handler.ts"), holding);
  await runtime.start();
  await runtime.hears("held", 2);
  await runtime.kill();
  await runtime.start();
  await runtime.hears("held", 4);
  await runtime.quiet();
  expect(runtime.told("held").toSorted()).toEqual(["a false", "a true", "b false", "b true"]);
});
