import { expect, it } from "vitest";
import { loadSpec } from "./manifest.ts";

const delivery = (fields: string) =>
  loadSpec(`  triggers: [{ watch: { apiVersion: v1, kind: Pod } }]\n  delivery: { ${fields} }`);

it("a batch has a size and a wait, and without one events come one by one", async () => {
  const { functions } = await delivery("batch: { maxSize: 10, maxWait: 2s }");
  expect(functions[0]?.delivery.batch).toEqual({ maxSize: 10, maxWaitMs: 2000 });
  expect((await delivery("batch: {}")).functions[0]?.delivery.batch).toEqual({ maxSize: 100, maxWaitMs: 1000 });
  expect((await delivery("mode: All")).functions[0]?.delivery).not.toHaveProperty("batch");
});

it.each([
  ["mode: Latest, batch: {}", "delivery.batch", "drops some"],
  ["mode: Reconcile, batch: {}", "delivery.batch", "drops some"],
  ["batch: { maxSize: 1 }", "maxSize", "at least 2"],
  ["batch: { maxSize: 1001 }", "maxSize", "at most 1000"],
  ["batch: { maxWait: 2m }", "maxWait", "at most 60s"],
  ["batch: { size: 3 }", "size", "unknown field"],
])("{ %s } is refused at %s", async (fields, path, what) => {
  const { faults } = await delivery(fields);
  const fault = faults.find(({ detail }) => detail.path?.endsWith(path));
  expect(fault?.message).toContain(what);
});
