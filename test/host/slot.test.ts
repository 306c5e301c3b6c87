import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import type { WatchfireError } from "../../runtime/base/errors.ts";
import { runSlot, type SlotRunParts } from "../../runtime/host/fleet-owner.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { JetstreamJournal } from "../../runtime/journal/nats/journal.ts";
import { fleetPlace, type JournalLocation } from "../../runtime/migrate/location.ts";
import { connectNats } from "../../runtime/migrate/open-journal.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { natsProgram } from "../tools/assets.ts";
import { startNats } from "../tools/nats.ts";
import { until } from "../tools/until.ts";
import { VirtualClock } from "../virtual-clock.ts";

const slots = 8;
const joined: JournalLocation = { where: fleetPlace(slots), slots, set: "lease-3", carried: {} };

/** The failure of an acquired slot if the Lease then names this location. */
async function taken(found: JournalLocation): Promise<WatchfireError> {
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
  runSlot({ ...parts, held } as unknown as SlotRunParts);
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
    expect(error.message).toContain("the checkpoints of slot 5 were moved to");
  },
);

describe.skipIf(!natsProgram)("a slot that stands still (NATS_SERVER names the server's program)", () => {
  test("takes up its functions once it is repaired, and a change that comes meanwhile after that, never before", async () => {
    const server = await startNats();
    const log = createLog("fatal", { write: () => {} });
    const at = { nats: { servers: [server.url] }, namespace: "apps", cluster: undefined, clock: systemClock, log };
    const connection = await connectNats(at);
    onTestFinished(() => connection.close());
    const store = new Checkpoint(
      await JetstreamJournal.open({ nats: connection, slot: "0", clock: systemClock, log, onLost: () => {} }),
    );
    for (const name of ["copy", "audit", "label"]) await store.openView(name, "settings", "/ConfigMap");
    await store.close(true);
    await connection.jsm.streams.deleteMessage(connection.logStream, 3);

    const begun: string[] = [];
    const reading = Promise.withResolvers<void>();
    const read = async () => {
      const which = begun.length === 0 ? "first" : "next";
      begun.push(which);
      if (which === "first") await reading.promise;
      begun.push(`${which} is over`);
      return { functions: [], rejected: [], faults: [], complete: true };
    };
    const found: JournalLocation = { where: fleetPlace(slots), slots, set: "", carried: {} };
    const lost: WatchfireError[] = [];
    const parts = {
      options: { clock: systemClock, random: Math.random, log },
      components: {
        metrics: { dispatch: {} },
        recorder: { listening: (runner: object) => runner },
        sandbox: { instances: () => ({}) },
        reads: { heardBy: () => () => {} },
        refusals: new Set(),
      },
      catalogue: { of: () => ({ read }) },
      ...{ connection, slots, place: found, readPlace: async () => found },
      onLost: (error: WatchfireError) => void lost.push(error),
      over: () => {},
    };
    const held = {
      slot: 0,
      fence: { lease: "slot-0", number: 2 },
      holds: true,
      annotations: {},
      annotate: async () => {},
    };
    const run = runSlot({ ...parts, held } as unknown as SlotRunParts);
    await until("it stands still", 10_000, async () => run.damage?.code === "WF_CHECKPOINT_CORRUPT");
    await run.reload();
    expect(begun).toEqual([]);
    await connection.jsm.streams.purge(connection.logStream, { filter: `${connection.logSubject}.0` });
    await until("it reads its functions", 10_000, async () => begun.length > 0);
    const reloaded = run.reload();
    reading.resolve();
    await reloaded;
    expect(begun).toEqual(["first", "first is over", "next", "next is over"]);
    await run.end();
    expect(lost).toEqual([]);
  });
});
