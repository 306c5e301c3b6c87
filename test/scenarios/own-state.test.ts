import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTeam, install } from "./cluster.ts";

/** Numbers the objects in the order of their events. Fails once for each object named `shy…`. */
const counting = `export default async (event, ctx) => {
  const { name } = event.object.metadata;
  const n = ((await ctx.state.get("n")) ?? 0) + 1;
  await ctx.state.set("n", n);
  await ctx.state.set("last", { name });
  if (name.startsWith("shy") && event.attempt === 1) throw new Error("not yet");
  ctx.log.info("told", { line: n + " " + (await ctx.state.keys()).join() });
};`;

test("a handler counts every event once in its own state, through failures, reloads and restarts", async () => {
  const team = await createTeam();
  const runtime = await install();
  for (const name of ["a", "b", "c", "shy"]) await team.make(name);
  const spec = { delivery: { concurrency: 1, retry: { initialDelay: "1ms" } } };
  await runtime.define("counts", { watch: team.watch(), spec });
  await writeFile(join(runtime.functions, "counts/handler.ts"), counting);
  await runtime.start();
  await runtime.hears("counts", 4);
  await writeFile(join(runtime.functions, "counts/handler.ts"), `${counting}\n// edited`);
  await runtime.reload();
  await team.make("d");
  await runtime.hears("counts", 5);
  await runtime.quiet();
  await runtime.kill();
  await runtime.start();
  await team.make("e");
  await runtime.hears("counts", 6);
  expect(runtime.told("counts")).toEqual([1, 2, 3, 4, 5, 6].map((n) => `${n} last,n`));
});

const storing = `export default async (event, ctx) => {
  const found = await ctx.state.get("text");
  const refusal = await ctx.state.set("text", "x".repeat(found ? 300_000 : 200_000)).then(() => "kept", (error) => error.message);
  ctx.log.info("told", { line: (found?.length ?? 0) + " " + refusal });
};`;

test("a value may be as large as the manifest's limit, and a larger one is refused with the size and the limit", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("stores", { watch: team.watch(), spec: { resources: { state: "256Ki" } } });
  await writeFile(join(runtime.functions, "stores/handler.ts"), storing);
  await runtime.start();
  await team.make("a");
  await runtime.hears("stores", 1);
  await team.make("b");
  await runtime.hears("stores", 2);
  const [first, second] = runtime.told("stores");
  expect(first).toBe("0 kept");
  expect(second).toMatch(/^200000 .*WF_STATE_FULL: .* 300038 bytes, and 262144 are allowed;/);
});
