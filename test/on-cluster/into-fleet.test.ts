// Migrations of checkpoints into slots on a real nats-server, with processes that end during them.
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { Nats } from "../../runtime/journal/nats/connection.ts";
import { JetstreamJournal } from "../../runtime/journal/nats/journal.ts";
import { sweepSlots } from "../../runtime/journal/nats/sweep.ts";
import { DataFolder } from "../../runtime/journal/sqlite/data-folder.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { FleetEntry } from "../../runtime/migrate/fleet-entry.ts";
import { fleetSlots } from "../../runtime/migrate/fleet-slots.ts";
import { alone, namesIn } from "../../runtime/migrate/layout.ts";
import { fleetPlace, placeIn, slotName } from "../../runtime/migrate/location.ts";
import type { SourceJournals } from "../../runtime/migrate/sources.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { slotOf } from "../../runtime/slots/rendezvous.ts";
import { MemoryStore } from "../journal/memory-store.ts";
import { admin, createNamespace } from "../target/fixture.ts";
import { natsProgram } from "../tools/assets.ts";
import { folderOf } from "../tools/folder.ts";
import { startNats } from "../tools/nats.ts";
import { until } from "../tools/until.ts";

const slots = 4;
const names = ["copy", "audit", "label", "sync"];
const log = createLog("error", { write: () => {} });
const { signal } = new AbortController();

/** A store that stops before it returns the body of one object, until it is released. */
class Stuck extends MemoryStore {
  readonly reached = Promise.withResolvers<void>();
  readonly letGo = Promise.withResolvers<void>();
  isOpen = false;

  override async body(view: number, key: string) {
    if (key === "team-a/sync" && !this.isOpen) {
      this.reached.resolve();
      await this.letGo.promise;
    }
    return super.body(view, key);
  }
}

async function place() {
  const server = await startNats();
  const nats = await Nats.connect({ servers: [server.url], name: "ns_watchfire", log });
  onTestFinished(() => nats.close());
  const store = new Stuck();
  for (const name of names) {
    const { id: view } = await store.openView(name, "settings", "/ConfigMap");
    const known = { uid: "u", resourceVersion: resourceVersion("7"), hash: "", deleted: false, matched: true };
    const row = { view, key: `team-a/${name}`, state: { ...known, body: Buffer.from(name) } };
    await store.commit({ ...emptyBatch, known: [row] });
  }
  const sources: SourceJournals = {
    layout: alone,
    journals: [{ slot: 0, store }],
    set: undefined,
    confirm: async () => {},
    over: async () => {},
    close: async () => {},
  };
  const options = { connection: nats, slots, manifests: async () => [], clock: systemClock, log };
  const fill = async (number: number, { lease = "lease-uid", cluster = "ours" } = {}) => {
    const elector = {
      fence: { lease, number },
      holds: true,
      raise: async (above: number) => ({ lease, number: above + 1 }),
    };
    const to = fleetSlots({ ...options, cluster }, elector, signal);
    return placeIn(await to.fill(sources, await namesIn([store])));
  };
  return { nats, store, fill };
}

const openSlot = (nats: Nats, set: string, carried: Readonly<Record<number, string>>, slot: number) =>
  JetstreamJournal.open({
    nats,
    slot: slotName(set, slot),
    clock: systemClock,
    log,
    onLost: () => {},
    witness: { read: () => carried[slot] ?? "", write: async () => {} },
  }).then((journal) => new Checkpoint(journal));

const setsOn = async ({ jsm, logStream, logSubject }: Nats) => {
  const { state } = await jsm.streams.info(logStream, { subjects_filter: `${logSubject}.*` });
  return [...new Set(Object.keys(state.subjects ?? {}).map((subject) => /\.([^.]*)_\d+$/.exec(subject)?.[1]))];
};

describe.skipIf(!natsProgram)("positions that are carried into slots (NATS_SERVER names the server's program)", () => {
  test("are whole though one process was stopped amid the copy, also where it wakes up and goes on", async () => {
    const { nats, store, fill } = await place();
    const stopped = fill(3);
    await store.reached.promise;
    expect(await setsOn(nats)).toEqual(["leaseuid-3"]);
    store.isOpen = true;
    const { set, carried } = await fill(4);
    // The first copy is removed, and all its further writes go to a set that is not read.
    expect(await setsOn(nats)).toEqual([set]);
    store.letGo.resolve();
    await stopped.catch(() => undefined);
    for (const name of names) {
      const slot = slotOf(name, slots);
      const opened = await openSlot(nats, set, carried, slot);
      const [view] = await opened.views(name);
      expect((await opened.body(view?.id ?? 0, `team-a/${name}`))?.bytes.toString()).toBe(name);
      await opened.close(true);
    }
  });

  test("never go into a set that is there, as one may be if the Lease was set back: its number is raised above all sets", async () => {
    const { nats, store, fill } = await place();
    store.isOpen = true;
    expect((await fill(3)).set).toBe("leaseuid-3");
    expect((await fill(2)).set).toBe("leaseuid-4");
    expect((await fill(4)).set).toBe("leaseuid-5");
    expect(await setsOn(nats)).toEqual(["leaseuid-5"]);
  });

  test("that another Lease of this cluster had are swept, and another cluster's are not", async () => {
    const { nats, store, fill } = await place();
    store.isOpen = true;
    await store.setCluster("ours");
    await fill(7, { lease: "deleted" });
    await fill(2);
    expect(await setsOn(nats)).toEqual(["leaseuid-2"]);
    await fill(1, { lease: "elsewhere", cluster: "theirs" });
    expect((await setsOn(nats)).toSorted()).toEqual(["elsewher-1", "leaseuid-2"]);
  });

  test("leave the first set alone where it is another cluster's, and take it away where it is nobody's", async () => {
    const { nats, store, fill } = await place();
    store.isOpen = true;
    for (const [cluster, expected] of [
      ["theirs", [undefined, "leaseuid-1"]],
      ["ours", ["leaseuid-2"]],
      [undefined, ["leaseuid-3"]],
    ] as const) {
      const first = await openSlot(nats, "", {}, 0);
      await first.journal.clear("new");
      if (cluster) await first.setCluster(cluster);
      else await first.openView("copy", "settings", "/ConfigMap");
      await first.close(true);
      await fill(expected.length === 2 ? 1 : cluster ? 2 : 3);
      expect((await setsOn(nats)).toSorted()).toEqual(expected.toSorted());
    }
  });

  test("that are gone from NATS before their slot is first opened are known to be gone", async () => {
    const { nats, store, fill } = await place();
    store.isOpen = true;
    const { set, carried } = await fill(1);
    await nats.jsm.streams.purge(nats.logStream);
    const slot = slotOf("copy", slots);
    const opened = await openSlot(nats, set, carried, slot);
    expect(opened.previousEnd).toBe("power-loss");
    await opened.close(true);
    await until("nothing is left open", 5_000, async () => nats.users.size === 0);
  });

  test("are refused to whoever had them before: a commit that comes late is the server's to refuse", async () => {
    const { nats } = await place();
    const lost: string[] = [];
    const open = (number: number) =>
      JetstreamJournal.open({
        nats,
        slot: "3",
        fence: { lease: "slot-lease", number },
        clock: systemClock,
        log,
        onLost: ({ code }) => void lost.push(code),
      }).then((journal) => new Checkpoint(journal));
    const owner = await open(1);
    const { id: view } = await owner.openView("copy", "settings", "/ConfigMap");
    // A process that takes the slot to migrate it has a later term.
    const carrier = await open(2);
    const row = { view, namespace: "", selection: "", lowWaterMark: resourceVersion("9"), epoch: 0, initial: false };
    await expect(owner.commit({ ...emptyBatch, cursors: [row] })).rejects.toMatchObject({
      code: "WF_CHECKPOINT_FENCED",
    });
    await carrier.close(false);
    const again = await open(3);
    await sweepSlots(nats, (slot) => slot === "3");
    await expect(again.commit({ ...emptyBatch, cursors: [row] })).rejects.toMatchObject({
      code: "WF_CHECKPOINT_REWOUND",
    });
    expect(lost).toEqual(["WF_CHECKPOINT_FENCED", "WF_CHECKPOINT_REWOUND"]);
  });
});

/** A replica that is about to join a fleet that started without checkpoints. */
async function late() {
  const namespace = await createNamespace();
  const transport = connectDirect({ server: admin.access.url, ...admin.access });
  onTestFinished(() => transport.close());
  const entry = (identity: string, data: string) =>
    new FleetEntry({
      ...{ transport, namespace, data, slots, identity, cluster: undefined, clock: systemClock, log },
      manifests: async () => [],
      random: () => 0.5,
    });
  await entry("far", folderOf({})).enter(signal);
  const data = folderOf({});
  return { data, folder: new DataFolder(data, systemClock), enter: () => entry("near", data).enter(signal) };
}

test("a fleet that began without the positions of a folder does not put them aside: the replica that has it says so and ends", async () => {
  const { data, folder, enter } = await late();
  await new Checkpoint(new SqliteJournal({ folder: data })).close(true);
  await expect(enter()).rejects.toMatchObject({
    code: "WF_CHECKPOINT_ELSEWHERE",
    message: expect.stringContaining("take checkpoint.db out of that folder"),
  });
  expect(folder.holdsPositions).toBe(true);
});

test("a copy out of a fleet that the Lease never came to name keeps nobody from the fleet, until a runtime has gone on from it", async () => {
  const { folder, enter } = await late();
  await folder.fill("clean", async () => {});
  expect([(await enter()).where, folder.holdsPositions]).toEqual([fleetPlace(slots), false]);
  await folder.fill("clean", async () => {});
  await folder.open().close(true);
  await expect(enter()).rejects.toMatchObject({ code: "WF_CHECKPOINT_ELSEWHERE" });
  expect(folder.holdsPositions).toBe(true);
});
