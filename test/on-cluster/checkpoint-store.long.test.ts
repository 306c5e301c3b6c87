import { randomBytes } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { type Batch, emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { SecretsJournal, type SecretsJournalOptions } from "../../runtime/journal/secrets/journal.ts";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { letter, spilledEvent, storeContract } from "../journal/store-contract.ts";
import { admin, createNamespace } from "../target/fixture.ts";
import { ImpatientClock } from "../tools/impatient-clock.ts";
import { RecordingTransport } from "../tools/recording-transport.ts";
import { until } from "../tools/until.ts";

const account = "watchfire";
const commit = (store: Checkpoint<SecretsJournal>, batch: Partial<Batch>) => store.commit({ ...emptyBatch, ...batch });

/** The Secrets in a separate namespace, which a test opens and kills, each time with the next fence. */
class Place {
  readonly namespace: string;
  readonly transport = new RecordingTransport(connectDirect({ server: admin.access.url, ...admin.access }));
  readonly warnings: object[] = [];
  readonly lost: string[] = [];
  private fence = 0;
  private readonly clock: Clock;

  private constructor(namespace: string, clock: Clock) {
    this.namespace = namespace;
    this.clock = clock;
    onTestFinished(() => this.transport.close());
  }

  static async make(clock: Clock = new ImpatientClock()): Promise<Place> {
    const namespace = await createNamespace();
    for (const name of checkpointSecrets(account)) {
      await admin.post(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, type: "Opaque" });
    }
    return new Place(namespace, clock);
  }

  options(over: Partial<SecretsJournalOptions> = {}): SecretsJournalOptions {
    const fence = { lease: "lease-uid", number: ++this.fence };
    const log = { warn: (fields: object) => void this.warnings.push(fields) };
    const onLost = ({ code }: { code: string }) => void this.lost.push(code);
    return {
      transport: this.transport,
      namespace: this.namespace,
      account,
      fence,
      clock: this.clock,
      log,
      onLost,
      ...over,
    };
  }

  open(over?: Partial<SecretsJournalOptions>): Promise<Checkpoint<SecretsJournal>> {
    return SecretsJournal.open(this.options(over)).then((journal) => new Checkpoint(journal));
  }

  path(index: number): string {
    return `/api/v1/namespaces/${this.namespace}/secrets/${checkpointSecrets(account)[index]}`;
  }
}

const known = (view: number, count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({
    view,
    key: `team/object-${from + index}`,
    state: {
      uid: crypto.randomUUID(),
      resourceVersion: resourceVersion(String(1_000_000 + index)),
      hash: "",
      deleted: false,
      matched: true,
      body: undefined,
    },
  }));

async function count(store: Checkpoint<SecretsJournal>, view: number): Promise<number> {
  let found = 0;
  await store.known(view, () => found++);
  return found;
}

describe("the store in Secrets", () => {
  storeContract(async () => {
    const place = await Place.make();
    return {
      open: () => place.open(),
      kill: (store) => store.close(false),
      unclean: "power-loss",
      keepsBodies: false,
    };
  });

  test("once another has opened it, the one before writes nothing any more and hears of it", async () => {
    const place = await Place.make();
    const first = await place.open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    await first.sync();
    const second = await place.open();
    await commit(first, { known: known(id, 1) });
    await expect(first.sync()).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    expect(place.lost).toEqual(["WF_CHECKPOINT_FENCED"]);
    await expect(commit(first, { known: known(id, 1) })).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    await commit(second, { known: known(id, 2) });
    await second.close(true);
    expect(await count(await place.open(), id)).toBe(2);
  });

  test("whoever held the Lease earlier cannot open it", async () => {
    const place = await Place.make();
    const early = place.options();
    await place.open();
    await expect(SecretsJournal.open(early).then((journal) => new Checkpoint(journal))).rejects.toMatchObject({
      code: "WF_CHECKPOINT_FENCED",
    });
  });

  test("a process whose Lease was deleted does not take it from the holder of the Lease that was created again", async () => {
    const place = await Place.make();
    const second = await place.open({ fence: { lease: "created again", number: 1 } });
    const late = place.open({ fence: { lease: "deleted", number: 5 }, holds: () => false });
    await expect(late).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    await second.sync();
    expect(place.lost).toEqual([]);
  });

  test("whoever holds a Lease that was set back opens it under a number above it; an equal number is another's", async () => {
    const place = await Place.make();
    const fence = { lease: "uid", number: 7, acquired: "noon" };
    const first = await place.open({ fence });
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    await first.sync();
    const set = { ...fence, acquired: "night" };
    await expect(place.open({ fence: set })).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    await expect(place.open({ fence: set, raise: async () => undefined })).rejects.toMatchObject({
      code: "WF_CHECKPOINT_FENCED",
    });
    const second = await place.open({ fence: set, raise: async (above) => ({ ...set, number: above + 1 }) });
    await commit(first, { known: known(id, 1) });
    await expect(first.sync()).rejects.toMatchObject({ code: "WF_CHECKPOINT_FENCED" });
    await commit(second, { known: known(id, 2) });
    await second.close(true);
    expect(await count(await place.open({ fence: { ...set, number: 8 } }), id)).toBe(2);
  });

  test("a Secret that somebody labels, and a write whose answer was lost, do not end it", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await store.sync();
    await admin.patch(place.path(0), { metadata: { labels: { team: "a" } } });
    await commit(store, { known: known(id, 3) });
    await store.sync();
    await store.close(false);
    const next = await place.open();
    expect([await count(next, id), place.lost]).toEqual([3, []]);
    expect((await admin.get(place.path(0))).metadata.labels).toEqual({ team: "a" });
  });

  test("what is too much for the log becomes a snapshot, and a kill at any write leaves one moment, whole", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    let puts = 0;
    // The process may end at every write of a Secret.
    let killAt = Number.POSITIVE_INFINITY;
    const request = place.transport.json.bind(place.transport);
    place.transport.json = async (call, limit) => {
      if (call.method === "PUT" && ++puts >= killAt) throw new Error("the process is gone");
      return request(call, limit);
    };
    const size = 20_000;
    await commit(store, { known: known(id, size), cursors: [cursor(id, "1")] });
    await store.sync();
    expect((await admin.get(place.path(1))).data?.data, "no snapshot was written").toBeDefined();
    for (let kill = 1; kill <= 4; kill++) {
      const doomed = await place.open();
      puts = 0;
      killAt = kill;
      await commit(doomed, { known: known(id, size), cursors: [cursor(id, String(kill + 1))] });
      const killed = until("it is killed", 20_000, async () => puts >= killAt);
      await Promise.race([doomed.sync(), killed]);
      await doomed.close(false);
      killAt = Number.POSITIVE_INFINITY;
      const after = await place.open();
      const [view] = await after.views("copy");
      const mark = Number(view?.cursors[0]?.lowWaterMark);
      expect(await count(after, id)).toBe(size);
      expect(mark).toBeGreaterThanOrEqual(1);
      await after.close(false);
    }
  }, 40_000);

  test("a snapshot that a lost answer named is not written over, so that a kill in the next one leaves it whole", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const size = 20_000;
    let phase: "writing" | "answer lost" | "slot written" = "writing";
    const request = place.transport.json.bind(place.transport);
    place.transport.json = async (call, limit) => {
      if (call.method !== "PUT") return request(call, limit);
      if (phase === "slot written") throw new Error("the process is gone");
      const answer = await request(call, limit);
      if (phase === "answer lost" && call.path !== place.path(0)) phase = "slot written";
      if (phase === "writing" && call.path === place.path(0) && (await admin.get(place.path(1))).data) {
        phase = "answer lost";
        await commit(store, { known: known(id, size), cursors: [cursor(id, "2")] });
        throw new Error("no answer");
      }
      return answer as never;
    };
    await commit(store, { known: known(id, size), cursors: [cursor(id, "1")] });
    const killed = until("it is killed", 20_000, async () => phase === "slot written");
    await Promise.race([store.sync(), killed]);
    await store.close(false);
    place.transport.json = request;
    const after = await place.open();
    expect(await count(after, id)).toBe(size);
    expect((await after.views("copy"))[0]?.cursors[0]?.lowWaterMark).toBe("1");
  }, 40_000);

  test("Secrets that are full take nothing more, and all along what only forgets", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const rows = known(id, 130_000);
    await commit(store, { known: rows });
    const synced = store.sync();
    const refused = await eventuallyRefused(() => commit(store, { known: known(id, 1) }));
    expect(refused).toMatchObject({ code: "WF_CHECKPOINT_FULL" });
    await commit(store, { known: rows.slice(10).map(({ view, key }) => ({ view, key, state: undefined })) });
    await synced;
    await commit(store, { known: known(id, 11) });
    await store.close(true);
    expect(await count(await place.open(), id)).toBe(11);
  }, 40_000);

  test("what a removed function had known makes room at once where there is none", async () => {
    const store = await (await Place.make()).open();
    const gone = await store.openView("pods", "settings", "/Pod");
    await commit(store, { known: known(gone.id, 65_000) });
    await store.retire([gone.id], 1_000);
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await commit(store, { known: known(id, 65_000) });
    await store.journal.syncWhole();
    expect([await count(store, gone.id), await count(store, id)]).toEqual([0, 65_000]);
    await store.close(false);
  }, 40_000);

  test("no handler fills them: dead letters that nothing compresses keep their bodies as far as their share goes", async () => {
    const store = await (await Place.make()).open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const body = () => randomBytes(200_000);
    for (let n = 0; n < 40; n++) {
      await commit(store, { deadLetters: [{ ...letter(id), body: body(), oldBody: undefined }] });
    }
    await store.journal.syncWhole();
    expect(store.deadLetterStock("copy")).toMatchObject({ count: 40, withoutBody: 38 });
    await store.close(false);
  }, 40_000);

  test("Secrets that are not there, or hold something else, are refused with what to do", async () => {
    const place = await Place.make();
    await expect(place.open({ account: "other" })).rejects.toMatchObject({ code: "WF_CHECKPOINT_SECRETS" });
    await admin.patch(place.path(0), { data: { head: Buffer.from("{}").toString("base64") } });
    await expect(place.open()).rejects.toMatchObject({ code: "WF_CHECKPOINT_CORRUPT" });
    await admin.patch(place.path(0), { data: { head: null, log: null, mine: "eA==" } });
    await expect(place.open()).rejects.toMatchObject({ code: "WF_CHECKPOINT_CORRUPT" });
  });

  test("bodies that went with their view make room for others", async () => {
    const store = await (await Place.make()).open();
    const body = Buffer.alloc(1024 * 1024, "x");
    const fill = (view: number, count: number) =>
      commit(store, {
        known: Array.from({ length: count }, (_, index) => ({
          view,
          key: `a/${index}`,
          state: { uid: "u", resourceVersion: resourceVersion("5"), hash: "", deleted: false, matched: true, body },
        })),
      });
    const gone = await store.openView("copy", "settings", "/ConfigMap");
    await fill(gone.id, 64);
    const next = await store.openView("other", "settings", "/ConfigMap");
    await fill(next.id, 1);
    expect(await store.body(next.id, "a/0")).toBeUndefined();
    await store.retire([gone.id], 1_000);
    await store.purge(1_001);
    await fill(next.id, 1);
    expect((await store.body(next.id, "a/0"))?.bytes).toHaveLength(body.length);
  });

  test("it has spilled events with their bodies after a clean end", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const event = spilledEvent(id, 1, { body: Buffer.from([0xff, 0xfe, 0x00]) });
    await commit(store, { spill: [event] });
    await store.close(true);
    const next = await place.open();
    expect([next.previousEnd, await next.spilled("copy", 0, 9)]).toEqual(["clean", [event]]);
  });
});

const cursor = (view: number, lowWaterMark: string) => ({
  view,
  namespace: "",
  selection: "",
  lowWaterMark: resourceVersion(lowWaterMark),
  epoch: 0,
  initial: false,
});

/** Repeats the call until it is refused. Returns that refusal. */
async function eventuallyRefused(ask: () => Promise<unknown>): Promise<unknown> {
  const deadline = AbortSignal.timeout(20_000);
  while (!deadline.aborted) {
    try {
      await ask();
    } catch (error) {
      return error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return "never refused";
}
