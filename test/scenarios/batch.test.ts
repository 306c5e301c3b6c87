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
