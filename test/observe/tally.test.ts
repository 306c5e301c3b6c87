import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { Tally } from "../../runtime/observe/tally.ts";

test("a tally shows at every scrape all that was counted until then, under the labels it was counted with", async () => {
  const registry = new Registry();
  const tally = new Tally({ name: "n", help: "h", labelNames: ["function", "trigger"], registers: [registry] });
  tally.add(1, "copy", "copy");
  tally.add(2, "copy", "other");
  tally.add(3, "copy", "copy");
  await registry.metrics();
  tally.add(10, "copy", "copy");
  const text = await registry.metrics();
  expect(text).toContain('n{function="copy",trigger="copy"} 14');
  expect(text).toContain('n{function="copy",trigger="other"} 2');
  expect(await registry.metrics()).toBe(text);
});
