import fc from "fast-check";
import { expect, test } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { epochOf, eventId, uidOf, withTrigger } from "../../runtime/engine/delivery/delivery.ts";

test("an event's id tells its trigger, its object's uid and its epoch, whatever signs an API puts into uids and resourceVersions", () => {
  const sign = fc.constantFrom("a", "7", "@", "~", ".", ":");
  const uid = fc.string({ unit: sign, minLength: 1, maxLength: 6 });
  const version = fc.string({ unit: fc.oneof(sign, fc.constant("/")), minLength: 1, maxLength: 6 });
  const type = fc.constantFrom("Added" as const, "Modified" as const, "Deleted" as const);
  const trigger = fc.constantFrom("settings", "settings.2");
  const given = fc.record({
    trigger,
    uid,
    version,
    type,
    lastKnown: fc.boolean(),
    selective: fc.boolean(),
    epoch: fc.nat(12),
  });
  fc.assert(
    fc.property(given, ({ version: of, ...each }) => {
      const id = eventId({ ...each, resourceVersion: resourceVersion(of) });
      expect([uidOf(id), epochOf(id)]).toEqual([each.uid, each.epoch]);
      const older = id.slice(each.trigger.length + 1);
      expect([withTrigger(older, each.trigger), withTrigger(id, each.trigger)]).toEqual([id, id]);
    }),
  );
});
