import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import { type Batch, emptyBatch } from "../../../runtime/journal/batch.ts";
import type { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { MemoryDisk } from "../../../runtime/journal/memory/journal.ts";
import { Nats } from "../../../runtime/journal/nats/connection.ts";
import { natsProgram } from "../../tools/assets.ts";
import { startNats, startNatsCluster } from "../../tools/nats.ts";
import type { NatsServer } from "../../tools/nats-server.ts";
import { until } from "../../tools/until.ts";
import { VirtualClock } from "../../virtual-clock.ts";
import { MemoryStore } from "../memory-store.ts";
import { letter, spilledEvent, storeContract } from "../store-contract.ts";
import { Place } from "./place.ts";
import { Commits, commit, cursor, markOf, row } from "./rows.ts";

/** All data that a store reports. */
async function stateOf(store: Checkpoint): Promise<unknown> {
  const functions = ["copy", "other"];
  const views = [...(await store.views()), ...(await store.retiredViews())].sort((a, b) => a.id - b.id);
  const known = await Promise.all(
    views.map(async ({ id }) => {
      const keys = new Map<string, unknown>();
      await store.known(id, (key, identity) => keys.set(key, identity));
      const bodies = await Promise.all([...keys.keys()].map((key) => store.body(id, key)));
      return [...keys].map(([key, identity], index) => [key, identity, bodies[index]]).sort();
    }),
  );
  return {
    cluster: await store.cluster(),
    views: views.map(({ cursors, ...view }) => ({ ...view, cursors: [...cursors].sort() })),
    known,
    journal: (await store.begun()).sort((a, b) => a.id - b.id),
    spill: await Promise.all(functions.map((name) => store.spilled(name, -1, 1_000))),
    letters: await Promise.all((await store.deadLetters()).map((each) => store.deadLetter(each.letter))),
  };
}

describe.skipIf(!natsProgram)("the store on NATS JetStream (NATS_SERVER names the server's program)", () => {
  storeContract(async () => {
    const place = await Place.make();
    return { open: () => place.open(), kill: (store) => store.close(false) };
  });

  test("any commits and reopenings leave what the store in memory has of them", async () => {
    const server = await startNats();
    const key = fc.constantFrom("a/x", "a/y", "b/ö z*>.");
    const view = fc.integer({ min: 1, max: 3 });
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom("older" as const, undefined),
    );
    const version = fc.integer({ min: 1, max: 9 });
    const sequence = fc.integer({ min: 1, max: 4 });
    const batch = fc.record<Batch>({
      known: fc.array(
        fc.oneof(
          fc.tuple(view, key, version, body).map((of) => row(...of)),
          fc.tuple(view, key).map(([of, name]) => ({ view: of, key: name, state: undefined })),
        ),
        { maxLength: 4 },
      ),
      bodies: fc.array(
        fc.record({ view, key, body: fc.uint8Array({ maxLength: 9 }).map((bytes) => Buffer.from(bytes)) }),
        { maxLength: 2 },
      ),
      cursors: fc.array(
        fc.tuple(view, version).map((of) => cursor(...of)),
        { maxLength: 2 },
      ),
      droppedCursors: fc.array(fc.record({ view, namespace: fc.constant("") }), { maxLength: 1 }),
      journal: fc.array(
        fc.record({
          id: sequence,
          started: fc.array(
            fc.record({
              view,
              key,
              id: fc.constant("u/1/Added"),
              resourceVersion: version.map((of) => resourceVersion(String(of))),
              type: fc.constant("Added" as const),
              attempt: fc.constant(1),
            }),
            { minLength: 1, maxLength: 2 },
          ),
        }),
        { maxLength: 2 },
      ),
      settledJournal: fc.array(sequence, { maxLength: 1 }),
      spill: fc.array(
        fc.tuple(view, sequence).map(([of, at]) => spilledEvent(of, at)),
        { maxLength: 2 },
      ),
      unspill: fc.array(fc.record({ function: fc.constant("copy"), sequence }), { maxLength: 1 }),
      deadLetters: fc.array(
        view.map((of) => letter(of)),
        { maxLength: 2 },
      ),
      droppedDeadLetters: fc.array(sequence.map(String), { maxLength: 1 }),
      state: fc.array(
        fc.record({
          function: fc.constantFrom("copy", "other"),
          key: fc.constantFrom("a", "ö"),
          value: fc.constantFrom("1", '"ö"', undefined),
        }),
        { maxLength: 2 },
      ),
    });
    type Step = (store: Checkpoint) => Promise<unknown>;
    const onBoth = (step: Step) => step;
    const step = fc.oneof(
      { weight: 6, arbitrary: batch.map((of) => onBoth((store) => store.commit({ ...of }))) },
      {
        weight: 2,
        arbitrary: fc
          .tuple(fc.constantFrom("copy", "other"), fc.constantFrom("one", "two"))
          .map(([name, trigger]) => onBoth((store) => store.openView(name, trigger, "/ConfigMap"))),
      },
      { weight: 1, arbitrary: view.map((of) => onBoth((store) => store.retire([of], 1_000))) },
      { weight: 1, arbitrary: fc.constant(onBoth((store) => store.purge(2_000))) },
      { weight: 1, arbitrary: fc.constantFrom("kill" as const, "end" as const, "snapshot" as const) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const place = await Place.make(server, { afterwards: false });
        const memory = new MemoryStore(new MemoryDisk());
        // No body is read from memory, so that the comparison is with the stored data.
        let store = await place.open({ room: 1 << 20, cacheBytes: 0 });
        await memory.openView("copy", "one", "/ConfigMap");
        await store.openView("copy", "one", "/ConfigMap");
        for (const each of steps) {
          if (typeof each === "function") {
            // Rows of unknown views are not accepted; the store in SQLite refuses them.
            await each(memory);
            await each(store);
          } else if (each === "snapshot") await store.journal.snapshot();
          else {
            await store.close(each === "end");
            store = await place.open({ room: 1 << 20, cacheBytes: 0 });
            expect(store.previousEnd).toBe(each === "end" ? "clean" : "killed");
          }
          expect(await stateOf(store)).toEqual(await stateOf(memory));
        }
        await store.close(true);
        await place.nats.close();
      }),
      { numRuns: 40 },
    );
  }, 120_000);

  test("a body that is of another state than its object counts as older, as a stale owner's or a killed one's does", async () => {
    const place = await Place.make();
    const store = await place.open({ cacheBytes: 0 });
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { known: [row(id, "a/x", 2, Buffer.from("two"))] });
    const [found] = await place.nats.jsm.streams
      .info(place.nats.bodyStream, { subjects_filter: ">" })
      .then(({ state }) => Object.keys(state.subjects ?? {}));
    const headers = place.nats.headers({ "Watchfire-State": "u-a/x/1" });
    await place.nats.js.publish(found ?? "", Buffer.from("one"), { headers });
    expect(await store.body(id, "a/x")).toEqual({ bytes: Buffer.from("one"), isOlder: true });
  });

  test("of two owners the stale one is refused by the server, and the other's commits stand", async () => {
    const place = await Place.make();
    const first = await place.open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    await commit(first, { cursors: [cursor(id, 1)] });
    const lost: string[] = [];
    const second = await place.open({ onLost: ({ code }) => void lost.push(code) });
    await expect(commit(first, { cursors: [cursor(id, 9)] })).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    expect(place.lost).toEqual(["WF_CHECKPOINT_FENCED"]);
    await expect(commit(first, { cursors: [cursor(id, 10)] })).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    await first.close(true);
    await commit(second, { cursors: [cursor(id, 2)] });
    await second.close(true);
    expect([await markOf(await place.open()), lost]).toEqual([2, []]);
  });

  test("whoever held the Lease earlier cannot open it", async () => {
    const place = await Place.make();
    await place.open({ fence: { lease: "uid", number: 3 } });
    const early = place.open({ fence: { lease: "uid", number: 2 } });
    await expect(early).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    await place.open({ fence: { lease: "another", number: 1 } });
  });

  test("a process whose Lease was deleted does not take it from the holder of the Lease that was created again", async () => {
    const place = await Place.make();
    const second = await place.open({ fence: { lease: "created again", number: 1 } });
    const { id } = await second.openView("copy", "settings", "/ConfigMap");
    const late = place.open({ fence: { lease: "deleted", number: 5 }, holds: () => false });
    await expect(late).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    await commit(second, { cursors: [cursor(id, 1)] });
    expect(await markOf(second)).toBe(1);
  });

  test("whoever holds a Lease that was set back opens it under a number above it, and nobody else does", async () => {
    const place = await Place.make();
    const first = await place.open({ fence: { lease: "uid", number: 7, acquired: "noon" } });
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    const asked: number[] = [];
    const raise = async (above: number) => {
      asked.push(above);
      return { lease: "uid", number: above + 1, acquired: "night" };
    };
    const low = { lease: "uid", number: 2, acquired: "night" };
    // One that has lost the Lease is refused as ever.
    const lost = place.open({ fence: low, raise: async () => undefined });
    await expect(lost).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    await commit(first, { cursors: [cursor(id, 1)] });
    const second = await place.open({ fence: low, raise });
    await expect(commit(first, { cursors: [cursor(id, 9)] })).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    const before = place.open({ fence: { lease: "uid", number: 7, acquired: "noon" } });
    await expect(before).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    // Its own number is no other's, even if another held the Lease under the same one before the restore.
    const twin = place.open({ fence: { lease: "uid", number: 8, acquired: "noon" } });
    await expect(twin).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    await second.close(true);
    expect(await markOf(await place.open({ fence: { ...low, number: 8 }, raise }))).toBe(1);
    expect(asked).toEqual([7]);
  });

  test("a store that is cleared for another's positions has nothing of its own, now and at the next start", async () => {
    const place = await Place.make();
    const blank = await stateOf(new MemoryStore());
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const journal = [{ id: 1, started: [] }];
    const known = [row(id, "a/x", 1, Buffer.from("one"))];
    await commit(store, {
      known,
      cursors: [cursor(id, 1)],
      journal,
      spill: [spilledEvent(id, 1)],
      deadLetters: [letter(id)],
    });
    expect(await stateOf(store)).not.toEqual(blank);
    await store.journal.clear("new");
    expect(await stateOf(store)).toEqual(blank);
    await store.close(true);
    expect(await stateOf(await place.open({ cacheBytes: 0 }))).toEqual(blank);
  });

  test("slots know nothing of each other", async () => {
    const place = await Place.make();
    const [one, two] = [await place.open({ slot: "1" }), await place.open({ slot: "2" })];
    const { id } = await one.openView("copy", "settings", "/ConfigMap");
    await commit(one, { known: [row(id, "a/x", 1, Buffer.from("one"))], cursors: [cursor(id, 1)] });
    const other = await two.openView("copy", "settings", "/ConfigMap");
    await commit(two, { known: [row(other.id, "a/x", 1, Buffer.from("two"))], cursors: [cursor(other.id, 2)] });
    await two.journal.snapshot();
    await one.close(true);
    const again = await place.open({ slot: "1", cacheBytes: 0 });
    expect([await markOf(again), String((await again.body(id, "a/x"))?.bytes)]).toEqual([1, "one"]);
  });

  test("what was acknowledged stays when the server is killed amid commits, and commits go on once it is back", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const commits = new Commits(store, id);
    for (let kill = 0; kill < 3; kill++) {
      const before = commits.acknowledged;
      await until("commits go on", 20_000, async () => commits.acknowledged > before + 100);
      await place.server.kill();
      await place.server.start();
    }
    const after = commits.acknowledged;
    await until("commits go on", 20_000, async () => commits.acknowledged > after + 100);
    await commits.end();
    await store.close(false);
    const next = await place.open({ cacheBytes: 0 });
    expect(await markOf(next)).toBe(commits.acknowledged);
    const last = await next.body(id, `a/${commits.acknowledged % 50}`);
    expect([String(last?.bytes), last?.isOlder, place.lost]).toEqual([`${commits.acknowledged}`, false, []]);
  }, 60_000);

  test("while the server is away commits are refused with a reason and nothing is lost or taken twice", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await place.server.kill();
    const batch = { ...emptyBatch, deadLetters: [letter(id)], cursors: [cursor(id, 7)] };
    await expect(store.commit(batch)).rejects.toMatchObject({ code: "WF_CHECKPOINT_NATS_AWAY" });
    expect(store.trouble?.code).toBe("WF_CHECKPOINT_NATS_AWAY");
    await expect(store.commit(batch)).rejects.toMatchObject({ code: "WF_CHECKPOINT_NATS_AWAY" });
    await place.server.start();
    const ids = await until("the commit is taken", 20_000, () => store.commit(batch));
    expect([ids, store.trouble]).toEqual([["1"], undefined]);
    await store.close(false);
    const next = await place.open();
    expect([(await next.deadLetters()).length, await markOf(next)]).toEqual([1, 7]);
  }, 60_000);

  test("a slot that commits nothing says soon that the server is away, and no longer once it is back", async () => {
    const place = await Place.make();
    const store = await place.open();
    await place.server.kill();
    await until("it says so", 10_000, async () => store.trouble?.code === "WF_CHECKPOINT_NATS_AWAY");
    await place.server.start();
    await until("it says so no longer", 20_000, async () => store.trouble === undefined);
    expect(place.lost).toEqual([]);
  }, 60_000);

  test("a kill in the middle of a snapshot leaves no orphan, and the log goes when a snapshot holds it", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await place.nats.objects.putBlob({ name: "0/snapshot/left" }, Buffer.from("half"));
    for (let n = 1; n <= 5; n++) await commit(store, { known: [row(id, `a/${n}`, n)], cursors: [cursor(id, n)] });
    await store.journal.snapshot();
    await commit(store, { cursors: [cursor(id, 6)] });
    const { state } = await place.nats.jsm.streams.info(place.nats.logStream);
    expect(state.messages).toBe(2);
    await store.close(false);
    const next = await place.open();
    let count = 0;
    await next.known(id, () => count++);
    expect([count, await markOf(next), next.previousEnd]).toEqual([5, 6, "killed"]);
    expect((await place.nats.objects.list()).map(({ name }) => name)).not.toContain("0/snapshot/left");
  });

  test("commits that come while a snapshot is written are in what is read of it", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const size = 20_000;
    await commit(store, { known: Array.from({ length: size }, (_, n) => row(id, `a/${n}`, 1)) });
    let written = false;
    const snapshot = store.journal.snapshot().then(() => {
      written = true;
    });
    let version = 1;
    while (!written) {
      version++;
      const known = Array.from({ length: 40 }, (_, n) => row(id, `a/${(n * 997) % size}`, version));
      await commit(store, { known: [...known, { view: id, key: `a/${size - version}`, state: undefined }] });
    }
    await snapshot;
    const before = await stateOf(store);
    await store.close(false);
    expect(version).toBeGreaterThan(2);
    expect(await stateOf(await place.open())).toEqual(before);
  }, 60_000);

  test("on a cluster of three what was acknowledged stays when the leader is killed amid commits, again and again", async () => {
    const servers = await startNatsCluster();
    const log = { warn: () => {}, info: () => {} };
    const connect = () => Nats.connect({ servers: servers.map(({ url }) => url), name: "ns-cluster", log });
    const nats = await until("the cluster has a leader", 30_000, connect);
    onTestFinished(() => nats.close());
    const place = new Place(servers[0] as NatsServer, nats);
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const commits = new Commits(store, id);
    const goesOn = (from = commits.acknowledged) =>
      until("commits go on", 60_000, async () => commits.acknowledged > from + 50);
    const leader = async () => (await nats.jsm.streams.info(nats.logStream)).cluster?.leader;
    const copies = (await nats.jsm.streams.info(nats.logStream)).cluster?.replicas?.length;
    expect(copies).toBe(2);
    for (let kill = 0; kill < 2; kill++) {
      await goesOn();
      const name = await until("there is a leader", 30_000, leader);
      const server = servers[Number(name.slice(1))] as NatsServer;
      await server.kill();
      await goesOn();
      await server.start();
    }
    await commits.end();
    await store.close(false);
    const next = await until("it opens", 30_000, () => place.open({ cacheBytes: 0 }));
    const last = await next.body(id, `a/${commits.acknowledged % 50}`);
    expect([await markOf(next), String(last?.bytes), next.previousEnd, place.lost]).toEqual([
      commits.acknowledged,
      `${commits.acknowledged}`,
      "killed",
      [],
    ]);
  }, 180_000);

  test("a commit that is not written when the store is closed is refused, and none is taken after that", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const underWay = commit(store, { cursors: [cursor(id, 1)] }).catch(() => "refused");
    await Promise.resolve();
    await Promise.resolve();
    const waiting = commit(store, { cursors: [cursor(id, 2)] });
    await Promise.all([store.close(false), expect(waiting).rejects.toMatchObject({ code: "WF_CHECKPOINT_NATS_AWAY" })]);
    await underWay;
    await expect(commit(store, { cursors: [cursor(id, 3)] })).rejects.toMatchObject({
      code: "WF_CHECKPOINT_NATS_AWAY",
    });
    expect(await markOf(await place.open())).toBeLessThan(2);
  });

  test("positions that move away are here, or known to be elsewhere, wherever the process ends on the way", async () => {
    const server = await startNats();
    for (const cut of [0, 1]) {
      const place = await Place.make(server);
      const store = await place.open();
      const { id } = await store.openView("copy", "settings", "/ConfigMap");
      await commit(store, { known: [row(id, "a/x", 1, Buffer.from("x"))], cursors: [cursor(id, 1)] });
      const { streams } = place.nats.jsm;
      const purge = streams.purge.bind(streams);
      let purged = 0;
      streams.purge = (...of) => (purged++ < cut ? purge(...of) : Promise.reject(new Error("the process ends here")));
      await expect(store.journal.moveTo("sqlite/a")).rejects.toThrow("the process ends here");
      streams.purge = purge;
      await store.close(false);
      const next = await place.open();
      expect([next.journal.movedTo, await next.views()]).toEqual(["sqlite/a", []]);
      await next.close(false);
    }
  });

  test("an opening that failed takes nothing away later, from whoever has the slot then", async () => {
    const place = await Place.make();
    const { jsm, objects } = place.nats;
    const first = await place.open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    await commit(first, { known: [row(id, "a/x", 1, Buffer.from("before"))] });
    await commit(first, { known: [{ view: id, key: "a/x", state: undefined }] });
    await first.close(true);
    await objects.putBlob({ name: "0/entry/orphan" }, Buffer.from("of a process that was killed"));
    const [purge, remove] = [jsm.streams.purge.bind(jsm.streams), objects.delete.bind(objects)];
    const away = () => Promise.reject(new Error("the server is away"));
    Object.assign(jsm.streams, { purge: away });
    Object.assign(objects, { delete: away });
    const clock = new VirtualClock();
    await expect(place.open({ clock })).rejects.toMatchObject({ code: "WF_CHECKPOINT_NATS_AWAY" });
    Object.assign(jsm.streams, { purge });
    Object.assign(objects, { delete: remove });
    const second = await place.open({ cacheBytes: 0 });
    await commit(second, { known: [row(id, "a/x", 2, Buffer.from("now"))] });
    let purged = 0;
    jsm.streams.purge = (...of) => {
      purged++;
      return purge(...of);
    };
    await clock.advance(2_000);
    expect([purged, String((await second.body(id, "a/x"))?.bytes)]).toEqual([0, "now"]);
    await second.close(true);
  });

  test("a server that is not there, an account that may not, and credentials that are gone are told apart", async () => {
    const server = await startNats();
    const log = { warn: () => {}, info: () => {} };
    const connect = (over: object) => Nats.connect({ servers: [server.url], name: "ns-x", log, ...over });
    await expect(connect({ credentials: `${server.folder}/none` })).rejects.toMatchObject({
      code: "WF_CHECKPOINT_NATS",
    });
    await server.kill();
    await expect(connect({})).rejects.toMatchObject({ code: "WF_CHECKPOINT_NATS_AWAY" });
  });
});
