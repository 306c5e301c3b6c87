import { expect, test } from "vitest";
import { FieldsDigest } from "../../runtime/engine/filter/changed-fields.ts";
import { Filter } from "../../runtime/engine/filter/filter.ts";
import { bundleFunction } from "../tools/bundle.ts";
import { folders, recordedEvents, shipped } from "./shipped.ts";

test("every folder is a function without a fault", () => {
  expect(shipped.faults.map((fault) => fault.message)).toEqual([]);
  expect(shipped.functions.map((manifest) => manifest.name)).toEqual([...folders].sort());
});

test.each(shipped.functions)("$name asks for no wildcard", ({ permissions }) => {
  for (const { apiGroups, resources, verbs } of permissions) {
    expect([...apiGroups, ...resources, ...verbs]).not.toContain("*");
  }
});

test.each(shipped.functions)("$name becomes one script that an isolate can run", async (manifest) => {
  const { script } = await bundleFunction(manifest);
  expect(script).not.toMatch(/\b(?:require|import)\s*\(/);
});

for (const manifest of shipped.functions) {
  test.each(recordedEvents(manifest.name))(
    `${manifest.name}'s $file is an event that its manifest lets through`,
    ({ event }) => {
      if (event.type === "Scheduled") {
        expect(manifest.schedules.map(({ name }) => name)).toContain(event.trigger);
        return;
      }
      const trigger = manifest.triggers.find(({ name }) => name === event.trigger);
      expect(trigger, `no trigger ${event.trigger}`).toBeDefined();
      if (!trigger) return;
      expect([event.object.apiVersion, event.object.kind]).toEqual([trigger.apiVersion, trigger.kind]);
      const hash = event.oldObject && new FieldsDigest(trigger.changedFields).of(JSON.stringify(event.oldObject));
      const before = { hash, matched: undefined, possiblyOutdated: false };
      const body = Buffer.from(JSON.stringify(event.object));
      const verdict = new Filter(trigger).judge(event.type, body, before, undefined);
      expect(verdict.deliver).toBe(true);
    },
  );
}
