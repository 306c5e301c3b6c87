import { expect, test } from "vitest";
import { SlotRun, type SlotRunParts } from "../../../runtime/app/fleet/slot-run.ts";
import { fleetPlace, type Place } from "../../../runtime/app/positions/place.ts";
import type { WatchfireError } from "../../../runtime/errors.ts";
import { createLog } from "../../../runtime/observe/log.ts";
import { VirtualClock } from "../../virtual-clock.ts";

const slots = 8;
const joined: Place = { where: fleetPlace(slots), slots, set: "lease-3", carried: {} };

/** What becomes of a slot that was taken, where the Lease names this place then. */
async function taken(found: Place): Promise<WatchfireError> {
  const lost = Promise.withResolvers<WatchfireError>();
  const log = createLog("error", { write: () => {} });
  const parts = {
    options: { clock: new VirtualClock(), log },
    components: {},
    catalogue: { of: () => ({ read: () => Promise.reject(new Error("no functions are read")) }) },
    slots,
    place: joined,
    readPlace: async () => found,
    onLost: lost.resolve,
    over: () => {},
  };
  const held = { slot: 5, fence: { lease: "slot-5", number: 2 }, holds: true, annotations: {} };
  new SlotRun(parts as unknown as SlotRunParts, held as unknown as SlotRun["held"]);
  return lost.promise;
}

test.each([
  ["another fleet", { ...joined, where: fleetPlace(4), slots: 4 }],
  ["a runtime alone", { ...joined, where: "sqlite/watchfire-0", slots: undefined }],
  ["other slots of this fleet", { ...joined, set: "lease-4" }],
])(
  "a replica that takes a slot ends where the positions went to %s meanwhile, before it opens anything",
  async (_, found) => {
    const error = await taken(found);
    expect(error.code).toBe("WF_CHECKPOINT_ELSEWHERE");
    expect(error.message).toContain("the positions of slot 5 went to");
  },
);
