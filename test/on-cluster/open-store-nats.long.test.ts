// Migrations of checkpoints between a data folder, Secrets and NATS, with processes that end during them.
import { join } from "node:path";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { selectionOf, whole } from "../../runtime/engine/state/sharding.ts";
import { KeptLease } from "../../runtime/host/fleet/kept-lease.ts";
import { emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint, type StoreKind } from "../../runtime/journal/checkpoint.ts";
import { Nats } from "../../runtime/journal/nats/connection.ts";
import { JetstreamJournal } from "../../runtime/journal/nats/journal.ts";
import { sweepSlots } from "../../runtime/journal/nats/sweep.ts";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import type { KubeTransport } from "../../runtime/kube/transport.ts";
import { Elector } from "../../runtime/lease/elector.ts";
import { leaseApi } from "../../runtime/lease/lease-api.ts";
import type { Fence } from "../../runtime/lease/lease-record.ts";
import { type EntryOptions, FleetEntry } from "../../runtime/migrate/fleet-entry.ts";
import { placesOf } from "../../runtime/migrate/layout.ts";
import { placeIn, setOf, slotName } from "../../runtime/migrate/location.ts";
import { eligibleFor, openStore } from "../../runtime/migrate/open-store.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { manifest } from "../engine/fixture.ts";
import { letter, spilledEvent } from "../journal/store-contract.ts";
import { admin, createNamespace } from "../target/fixture.ts";
import { natsProgram } from "../tools/assets.ts";
import { folderOf } from "../tools/folder.ts";
import { ImpatientClock } from "../tools/impatient-clock.ts";
import { startNats } from "../tools/nats.ts";
import type { NatsServer } from "../tools/nats-server.ts";
import { RecordingTransport } from "../tools/recording-transport.ts";
import { until } from "../tools/until.ts";

const account = "watchfire";
const pod = "watchfire-0";

/** A pod with its volume, in a namespace with a Lease and the Secrets, and a NATS. */
class Pod {
  readonly data = folderOf({});
  readonly transport: KubeTransport & { close(): Promise<void> };
  readonly lines: string[] = [];
  readonly lost: string[] = [];
  readonly server: NatsServer;
  private readonly clock = new ImpatientClock();
  readonly namespace: string;
  private elector: Elector | undefined;

  private constructor(namespace: string, server: NatsServer) {
    this.namespace = namespace;
    this.server = server;
    this.transport = new RecordingTransport(connectDirect({ server: admin.access.url, ...admin.access }));
    onTestFinished(async () => {
      await this.elector?.release();
      await this.transport.close();
    });
  }

  static async make(): Promise<Pod> {
    const namespace = await createNamespace();
    for (const name of checkpointSecrets(account)) {
      await admin.post(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, type: "Opaque" });
    }
    return new Pod(namespace, await startNats());
  }

  /** Opens the store as a container does that starts after another has ended. */
  open(store: StoreKind, over: { named?: boolean; data?: string } = {}): Promise<Checkpoint> {
    return this.hurried(this.opened(store, over));
  }

  private async opened(store: StoreKind, { named = true, data = this.data }): Promise<Checkpoint> {
    const { namespace, clock, transport } = this;
    await this.elector?.release();
    const log = createLog("info", { write: (line: string) => void this.lines.push(line) });
    const { signal } = new AbortController();
    this.elector = new Elector({
      api: leaseApi(transport, namespace, account),
      identity: pod,
      clock,
      random: () => 0.5,
      log,
      eligible: eligibleFor(pod, { servers: [] }),
    });
    await this.elector.campaign(signal);
    const onLost = ({ code }: { code: string }) => void this.lost.push(code);
    const nats = named ? { servers: [this.server.url] } : undefined;
    const options = {
      data,
      store,
      nats,
      transport,
      namespace,
      account,
      pod,
      identity: pod,
      cluster: undefined,
      clock,
      random: () => 0.5,
      log,
      onLost,
    };
    return openStore(options, this.elector, signal);
  }

  /** Joins the fleet as a new replica does. */
  enter(slots: number, manifests?: EntryOptions["manifests"]): Promise<void> {
    return this.hurried(this.entered(slots, manifests));
  }

  /** The same without skipping the wait for replicas at work. */
  async entered(slots: number, manifests: EntryOptions["manifests"] = async () => []): Promise<void> {
    const { namespace, clock, transport, data, server } = this;
    await this.elector?.release();
    const log = createLog("info", { write: (line: string) => void this.lines.push(line) });
    const nats = { servers: [server.url] };
    const parts = { transport, namespace, account, data, slots, nats, identity: pod, cluster: undefined, clock, log };
    const entry = new FleetEntry({ ...parts, manifests, random: () => 0.5 });
    await entry.enter(new AbortController().signal);
  }

  /** Skips the wait for replicas at work, because there are no others. */
  hurried<T>(work: Promise<T>): Promise<T> {
    const timer = setInterval(() => this.clock.cutShort(10_000, 10_001), 20);
    return work.finally(() => clearInterval(timer));
  }

  /** Number of slot marks of each Lease. */
  async marks(): Promise<readonly number[]> {
    const { items } = await admin.get(`/apis/coordination.k8s.io/v1/namespaces/${this.namespace}/leases`);
    return (items as { metadata: { annotations?: object } }[]).map(({ metadata }) => {
      return Object.keys(metadata.annotations ?? {}).filter((key) => /\/nats-(.+_)?\d+$/.test(key)).length;
    });
  }

  /** Writes into a Lease as another client. */
  async patch(name: string, patch: object): Promise<void> {
    await admin.patch(`/apis/coordination.k8s.io/v1/namespaces/${this.namespace}/leases/${name}`, patch);
  }

  /** Deletes all Leases as another client. */
  async deleteLeases(): Promise<void> {
    await this.elector?.release();
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${this.namespace}/leases`;
    const { items } = await admin.get(leases);
    for (const { metadata } of items as { metadata: { name: string } }[])
      await admin.delete(`${leases}/${metadata.name}`);
  }

  /** Opens one of the fleet's slots as a replica does; without a fence, nothing fences it. */
  async slot(slot: number, fence?: Fence, of?: string): Promise<Checkpoint> {
    const log = createLog("error", { write: () => {} });
    const nats = await this.connection();
    const set = of ?? placeIn(await this.annotations()).set;
    return JetstreamJournal.open({
      ...{ nats, slot: slotName(set, slot), fence, clock: this.clock, log },
      onLost: () => {},
      onClosed: () => nats.close(),
    }).then((journal) => new Checkpoint(journal));
  }

  connection(): Promise<Nats> {
    const log = createLog("error", { write: () => {} });
    return Nats.connect({ servers: [this.server.url], name: `${this.namespace}_${account}`, log });
  }

  async annotations(): Promise<Record<string, string>> {
    const lease = await admin.get(`/apis/coordination.k8s.io/v1/namespaces/${this.namespace}/leases/${account}`);
    return (lease.metadata.annotations ?? {}) as Record<string, string>;
  }
}

/** The layout of functions without shards. */
const layoutOf = (slots: number) => ({ slots, shardingOf: () => whole });

/** All data that a migration must keep. */
async function contents(store: Checkpoint) {
  const [view] = await store.views("copy");
  const keys: string[] = [];
  await store.known(view?.id ?? 0, (key, { resourceVersion: version }) => keys.push(`${key} ${version}`));
  return {
    mark: view?.cursors[0]?.lowWaterMark,
    keys,
    letters: (await store.deadLetters()).map(({ error }) => error.message),
    spill: (await store.spilled("copy", 0, 9)).map(({ id, body }) => `${id} ${body}`),
    journal: (await store.begun()).map(({ started }) => started.length),
    body: String((await store.body(view?.id ?? 0, "team-a/web"))?.bytes),
  };
}

async function fill(folder: string, selection = ""): Promise<void> {
  const store = new Checkpoint(new SqliteJournal({ folder }));
  const { id: view } = await store.openView("copy", "settings", "/ConfigMap");
  const version = resourceVersion("5");
  const state = { uid: "u1", resourceVersion: version, hash: "", deleted: false, matched: true };
  await store.commit({
    ...emptyBatch,
    known: [{ view, key: "team-a/web", state: { ...state, body: Buffer.from("{}") } }],
    cursors: [{ view, namespace: "", selection, lowWaterMark: version, epoch: 0, initial: false }],
    journal: [
      {
        id: 1,
        started: [{ view, key: "team-a/web", id: "u1/5/Added", resourceVersion: version, type: "Added", attempt: 1 }],
      },
    ],
    spill: [spilledEvent(view, 1)],
    deadLetters: [letter(view)],
  });
  await store.close(true);
}

describe.skipIf(!natsProgram)("positions on NATS (NATS_SERVER names the server's program)", () => {
  test("go from a data folder onto NATS, into Secrets, back onto NATS and back into the folder, whole", async () => {
    const one = await Pod.make();
    await fill(one.data);
    const folder = new Checkpoint(new SqliteJournal({ folder: one.data, maintenance: true }));
    const expected = await contents(folder);
    await folder.close(false);
    expect(expected).toMatchObject({ keys: ["team-a/web 5"], letters: ["no"], journal: [1], body: "{}" });
    // Secrets store no bodies.
    for (const [kind, body] of [
      ["nats", "{}"],
      ["kubernetes", "undefined"],
      ["nats", "undefined"],
      ["sqlite", "undefined"],
    ] as const) {
      const store = await one.open(kind);
      expect(await contents(store), kind).toEqual({ ...expected, body: kind === "kubernetes" ? "{}" : body });
      expect((await one.annotations())["watchfire.dev/positions"]).toBe(kind === "sqlite" ? `sqlite/${pod}` : kind);
      await store.close(true);
      const again = await one.open(kind);
      expect([again.previousEnd, await contents(again)]).toEqual(["clean", { ...expected, body }]);
      await again.close(true);
    }
  });

  test("go into fleets of any number of slots and out of them, from each kind of store into each, whole", async () => {
    const one = await Pod.make();
    await fill(one.data);
    const folder = new Checkpoint(new SqliteJournal({ folder: one.data, maintenance: true }));
    const expected = await contents(folder);
    await folder.close(false);
    const place = async () => (await one.annotations())["watchfire.dev/positions"];
    for (const [ways, kind, body] of [
      [[4], "nats", "{}"],
      [[3, 5], "sqlite", "{}"],
      [[1], "kubernetes", "{}"],
      // Secrets store no bodies.
      [[2], "nats", "undefined"],
      [[6], "sqlite", "undefined"],
    ] as const) {
      for (const slots of ways) {
        await one.enter(slots);
        expect(await place()).toBe(`fleet/${slots}`);
      }
      const store = await one.open(kind);
      expect([store.previousEnd, await contents(store)], `${ways} ${kind}`).toEqual(["clean", { ...expected, body }]);
      expect(await place()).toBe(kind === "sqlite" ? `sqlite/${pod}` : kind);
      await store.close(true);
    }
    expect(one.lines.filter((line) => line.includes('"checkpoints moved"'))).toHaveLength(11);
    expect(Math.max(...(await one.marks())), "a Lease has the mark of one set alone").toBe(1);
  });

  test("that could not be copied into a fleet, or out of NATS, stand as the last run left them, clean or not", async () => {
    const one = await Pod.make();
    await fill(one.data);
    const noFolder = join(folderOf({ file: "" }), "file");
    for (const end of ["clean", "killed"] as const) {
      for (const slots of [0, 2]) {
        await (await one.open("nats")).close(end === "clean");
        const noFunctions = () => Promise.reject(new Error("the functions cannot be read"));
        await expect(one.enter(3, noFunctions)).rejects.toThrow("the functions cannot be read");
        if (slots > 0) await one.enter(slots);
        await expect(one.open("sqlite", { data: noFolder })).rejects.toThrow("ENOTDIR");
        const store = await one.open("kubernetes");
        expect(store.previousEnd, `${slots} slots`).toBe(end);
        await store.close(true);
      }
    }
  });

  test("of functions that are gone leave no word on the Lease after a start at which no replica works; of others they do", async () => {
    const one = await Pod.make();
    await fill(one.data);
    for (const slots of [2, 3]) await one.enter(slots);
    const slot = await one.slot(0);
    const hundred = (what: string) => Array.from({ length: 100 }, (_, index) => `${what}-${index}`);
    const removed = hundred("removed");
    const views = await Promise.all(removed.map((name) => slot.openView(name, "settings", "/ConfigMap")));
    await slot.retire(
      views.map(({ id }) => id),
      Date.now(),
    );
    await slot.close(true);
    const names = ["copy", ...removed, ...hundred("gone")];
    const spreads = JSON.stringify(Object.fromEntries(names.map((name) => [name, "1 by key"])));
    await one.patch(account, { metadata: { annotations: { "watchfire.dev/shards": spreads } } });
    const recorded = async () => Object.keys(JSON.parse((await one.annotations())["watchfire.dev/shards"] ?? "{}"));
    await one.patch(`${account}-slot-0`, { spec: { holderIdentity: "another#1" } });
    await one.enter(3);
    expect(await recorded()).toEqual(names);
    await one.patch(`${account}-slot-0`, { spec: { holderIdentity: "" } });
    await one.enter(3);
    expect(await recorded()).toEqual(["copy", ...removed]);
  });

  test("are found on NATS where the Leases that say where they are were deleted, for as many slots or others, or for none", async () => {
    const one = await Pod.make();
    await fill(one.data, selectionOf("", "", undefined));
    const three = async () => [manifest({ shards: 3 })].map((each) => ({ ...each, name: "copy" }));
    await one.enter(4, three);
    const { "watchfire.dev/nats-set": set } = await one.annotations();
    for (const slot of [0, 1, 2, 3]) await (await one.slot(slot, { lease: "slot", number: 1 })).close(true);
    await one.deleteLeases();
    await one.enter(4, three);
    const { "watchfire.dev/shards": spreads, ...place } = await one.annotations();
    expect(place).toMatchObject({ "watchfire.dev/positions": "fleet/4", "watchfire.dev/nats-set": set });
    expect(JSON.parse(spreads ?? "{}")).toEqual({ copy: "3 by key" });
    await one.deleteLeases();
    await one.enter(6);
    expect((await one.annotations())["watchfire.dev/positions"]).toBe("fleet/6");
    const store = await one.open("nats");
    await store.close(true);
    await one.deleteLeases();
    const again = await one.open("nats");
    expect(again.previousEnd).toBe("clean");
    expect(await contents(again)).toMatchObject({ keys: ["team-a/web 5"], letters: ["no"], body: "{}" });
    await again.close(true);
  });

  test("are found where a slot of them is damaged: whoever opens it tells of that", async () => {
    const one = await Pod.make();
    await fill(one.data);
    await one.enter(2);
    const { "watchfire.dev/nats-set": set = "" } = await one.annotations();
    for (const slot of [0, 1]) await (await one.slot(slot, { lease: "slot", number: 1 })).close(true);
    await one.deleteLeases();
    const connection = await connect({ servers: one.server.url });
    const [empty] = [0, 1].filter((slot) => !placesOf(layoutOf(2), "copy").includes(slot));
    await jetstream(connection).publish(
      `watchfire.${one.namespace}_${account}.log.${slotName(set, empty ?? 0)}`,
      "by hand",
    );
    await connection.close();
    await one.enter(2);
    expect(await one.annotations()).toMatchObject({
      "watchfire.dev/positions": "fleet/2",
      "watchfire.dev/nats-set": set,
    });
  });

  test("stay those of the replicas at work where the Lease is deleted as one comes that asks for more slots", async () => {
    const one = await Pod.make();
    await fill(one.data);
    // The function is in the same slot with either number of slots.
    const placeOf = (slots: number) => placesOf(layoutOf(slots), "copy")[0] ?? 0;
    const slots = [3, 4, 5, 6, 7].find((each) => placeOf(each) === placeOf(each + 1)) ?? 0;
    await one.enter(slots);
    for (let slot = 0; slot < slots; slot++) await (await one.slot(slot, { lease: "slot", number: 1 })).close(true);
    const place = placeIn(await one.annotations());
    const atWork = new KeptLease(
      leaseApi(one.transport, one.namespace, account),
      () => ({ place, shardings: new Map() }),
      { warn: () => {} },
    );
    await one.deleteLeases();
    const entered = one.entered(slots + 1);
    await until("it is found", 20_000, async () => one.lines.some((line) => line.includes("found on NATS")));
    await atWork.get(3_000);
    await one.hurried(entered);
    const after = await one.annotations();
    expect(after["watchfire.dev/positions"]).toBe(`fleet/${slots + 1}`);
    // Replicas with different numbers never work in one set.
    expect(after["watchfire.dev/nats-set"]).not.toBe(place.set);
  });

  test("that may be half of a copy are not gone on from where no Lease says that they count: it waits for somebody who knows", async () => {
    const one = await Pod.make();
    await fill(one.data);
    await one.enter(4);
    const before = await one.annotations();
    await one.deleteLeases();
    const entered = one.enter(4);
    const waits = async () => one.lines.some((line) => line.includes("WF_CHECKPOINT_UNPLACED"));
    await until("it waits", 20_000, waits);
    const { "watchfire.dev/nats-set": set } = before;
    expect(one.lines.join()).toMatch(new RegExp(`\\\\"${set}\\\\" of [1-4] slots`));
    await admin.post(`/apis/coordination.k8s.io/v1/namespaces/${one.namespace}/leases`, {
      metadata: { name: account, annotations: before },
    });
    await entered;
    expect(await one.annotations()).toEqual(before);
  });

  test("that were carried on and then swept in part are not gone on from where no Lease says that they count", async () => {
    const one = await Pod.make();
    await fill(one.data);
    await one.enter(4);
    const { set } = placeIn(await one.annotations());
    for (const slot of [0, 1, 2, 3]) await (await one.slot(slot, { lease: "slot", number: 1 })).close(true);
    const later = { lease: set.split("-")[0] ?? "", number: 7 };
    await (await one.slot(0, later, setOf(later))).close(false);
    const nats = await one.connection();
    await sweepSlots(nats, (name) => placesOf(layoutOf(4), "copy").some((slot) => name === slotName(set, slot)));
    await nats.close();
    await one.deleteLeases();
    const entered = one.enter(4);
    const waits = async () => one.lines.some((line) => line.includes("WF_CHECKPOINT_UNPLACED"));
    await Promise.race([entered, until("it waits", 20_000, waits)]);
    expect(await waits()).toBe(true);
    const annotations = { "watchfire.dev/positions": "fleet/4", "watchfire.dev/nats-set": setOf(later) };
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${one.namespace}/leases`;
    await admin.post(leases, { metadata: { name: account, annotations } });
    await entered;
  });

  test("in Secrets are not written over by what a copy left on NATS, where no Lease says which count", async () => {
    const one = await Pod.make();
    await fill(one.data);
    const before = await one.open("kubernetes");
    const expected = await contents(before);
    await before.close(true);
    // The process that migrated them into a fleet ended after the first views.
    const half = await one.slot(0, { lease: "carrier", number: 1 }, "carrier-1");
    await half.openView("another", "settings", "/ConfigMap");
    await half.close(false);
    await one.deleteLeases();
    const opening = one.open("kubernetes");
    const waits = async () => one.lines.some((line) => line.includes("WF_CHECKPOINT_UNPLACED"));
    await Promise.race([opening, until("it waits", 20_000, waits)]);
    await one.patch(account, { metadata: { annotations: { "watchfire.dev/positions": "kubernetes" } } });
    const after = await opening;
    expect(await contents(after)).toEqual({ ...expected, body: "undefined" });
    await after.close(true);
  });

  test.each(["nats", "kubernetes"] as const)(
    "are opened where etcd was restored and the Lease's number lies below the one in %s, and the one before writes nothing",
    async (kind) => {
      const one = await Pod.make();
      await fill(one.data);
      await (await one.open(kind)).close(true);
      await (await one.open(kind)).close(true);
      const before = await one.open(kind);
      const expected = await contents(before);
      await one.patch(account, { spec: { holderIdentity: "", leaseTransitions: 1 } });
      const store = await one.open(kind);
      expect(await contents(store)).toEqual(expected);
      expect(one.lines.filter((line) => line.includes("etcd was probably restored"))).toEqual([
        expect.stringMatching(/"before":2,"recorded":3,"fence":4\b/),
      ]);
      await before.openView("copy", "late", "/ConfigMap").catch(() => undefined);
      await expect(before.sync()).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
      await store.close(true);
      // The next one has a higher number, and nothing to raise.
      await (await one.open(kind)).close(true);
      expect(one.lines.filter((line) => line.includes("etcd was probably restored"))).toHaveLength(1);
    },
  );

  test("leave a fleet whose slots' Leases were set back below the numbers on NATS", async () => {
    const one = await Pod.make();
    await fill(one.data);
    await one.enter(2);
    const labels = { "watchfire.dev/fleet": account };
    const path = `/apis/coordination.k8s.io/v1/namespaces/${one.namespace}/leases`;
    const [slot = 0] = placesOf(layoutOf(2), "copy");
    const name = `${account}-slot-${slot}`;
    const spec = { leaseTransitions: 1, leaseDurationSeconds: 10 };
    const { metadata } = await admin.post(path, { metadata: { name, labels }, spec });
    const worked = await one.slot(slot, { lease: String(metadata.uid), number: 9 });
    const expected = await contents(worked);
    await worked.close(true);
    const store = await one.open("nats");
    expect(await contents(store)).toEqual(expected);
    expect(one.lines.join()).toMatch(/"before":2,"recorded":9,"fence":10\b.*etcd was probably restored/);
    await store.close(true);
  });

  test("are not begun anew in a folder where no NATS is named", async () => {
    const one = await Pod.make();
    await (await one.open("nats")).close(true);
    await expect(one.open("sqlite", { named: false })).rejects.toMatchObject({ code: "WF_CHECKPOINT_ELSEWHERE" });
  });

  test("that the Lease says are in a store, and are not, are not begun anew, however often it is tried", async () => {
    for (const place of ["nats", "kubernetes"] as const) {
      const one = await Pod.make();
      await (await one.open("sqlite")).close(true);
      await one.patch(account, { metadata: { annotations: { "watchfire.dev/positions": place } } });
      for (const kind of ["sqlite", "kubernetes", "nats", "sqlite", "kubernetes", "nats"] as const) {
        await expect(one.open(kind), `${place} to ${kind}`).rejects.toMatchObject({ code: "WF_CHECKPOINT_ELSEWHERE" });
      }
      for (let times = 0; times < 2; times++) {
        await expect(one.enter(2)).rejects.toMatchObject({ code: "WF_CHECKPOINT_ELSEWHERE" });
      }
      expect((await one.annotations())["watchfire.dev/positions"]).toBe(place);
    }
  });

  test("wait for a NATS that is away, and say so", async () => {
    const one = await Pod.make();
    await one.server.kill();
    const opening = one.open("nats");
    await until("it waits", 20_000, async () => one.lines.some((line) => line.includes("WF_CHECKPOINT_NATS_AWAY")));
    await one.server.start();
    await (await opening).close(true);
  });

  test("are in doubt where NATS came back without them, and that is said with a code", async () => {
    const one = await Pod.make();
    const first = await one.open("nats");
    await first.openView("copy", "settings", "/ConfigMap");
    await first.close(true);
    await one.server.kill();
    one.server.empty();
    await one.server.start();
    const second = await one.open("nats");
    expect([second.previousEnd, await second.views()]).toEqual(["power-loss", []]);
    expect(one.lines.join()).toContain("WF_CHECKPOINT_REWOUND");
    await second.close(true);
  });
});
