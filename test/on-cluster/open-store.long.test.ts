// Migrations of checkpoints from a data folder into Secrets and back, with processes that end during them.
import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { type Batch, emptyBatch } from "../../runtime/journal/batch.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import type { KubeRequest, KubeTransport } from "../../runtime/kube/transport.ts";
import { Elector } from "../../runtime/lease/elector.ts";
import { leaseApi } from "../../runtime/lease/lease-api.ts";
import { eligibleFor, openStore } from "../../runtime/migrate/open-store.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { letter } from "../journal/store-contract.ts";
import { admin, createNamespace } from "../target/fixture.ts";
import { folderOf } from "../tools/folder.ts";
import { ImpatientClock } from "../tools/impatient-clock.ts";
import { RecordingTransport } from "../tools/recording-transport.ts";
import { until } from "../tools/until.ts";

const account = "watchfire";
const pod = "watchfire-0";

/** A pod with its volume, in a namespace with a Lease and the Secrets. */
class Pod {
  readonly data = folderOf({});
  readonly transport = new RecordingTransport(connectDirect({ server: admin.access.url, ...admin.access }));
  /** Number of the write at which the next process dies: that write is still made, later ones are not. */
  dies = Number.POSITIVE_INFINITY;
  readonly lines: string[] = [];
  private readonly clock = new ImpatientClock();
  private readonly namespace: string;
  private elector: Elector | undefined;

  private constructor(namespace: string) {
    this.namespace = namespace;
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
    return new Pod(namespace);
  }

  /** Opens the store as a container does that starts after another has ended. */
  async open(store: "sqlite" | "kubernetes", signal = new AbortController().signal): Promise<Checkpoint> {
    const { namespace, clock } = this;
    const transport = this.mortal();
    await this.elector?.release();
    const log = createLog("info", { write: (line: string) => void this.lines.push(line) });
    this.elector = new Elector({
      api: leaseApi(transport, namespace, account),
      identity: pod,
      clock,
      random: () => 0.5,
      log,
      eligible: eligibleFor(pod, undefined),
    });
    await this.elector.campaign(signal);
    const options = {
      data: this.data,
      store,
      transport,
      namespace,
      account,
      pod,
      cluster: undefined,
      clock,
      random: () => 0.5,
      log,
      onLost: () => {},
    };
    return openStore(options, this.elector, signal);
  }

  /** The requests of one process. */
  private mortal(): KubeTransport {
    const { transport, dies } = this;
    const gone = new WatchfireError("WF_CHECKPOINT_FENCED", { what: "the process is gone" });
    let writes = 0;
    return {
      description: transport.description,
      request: (call) => transport.request(call),
      close: () => transport.close(),
      json: async <T>(call: KubeRequest, limit?: number) => {
        if (writes >= dies) throw gone;
        if (call.method !== "GET") writes++;
        const answer = await transport.json<T>(call, limit);
        if (writes >= dies) throw gone;
        return answer;
      },
    };
  }

  /** Starts a process that dies at this write. Returns `false` if it ended before that. */
  async killed(store: "sqlite" | "kubernetes", write: number): Promise<boolean> {
    this.dies = write;
    const opening = this.open(store);
    this.dies = Number.POSITIVE_INFINITY;
    const isDead = await opening
      .then((opened) => opened.close(true))
      .then(
        () => false,
        () => true,
      );
    if (isDead) {
      this.elector = undefined;
      await admin.patch(this.lease, { spec: { holderIdentity: "" } });
    }
    return isDead;
  }

  get place(): Promise<string | undefined> {
    return admin.get(this.lease).then(({ metadata }) => metadata.annotations?.["watchfire.dev/positions"]);
  }

  get lease(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${this.namespace}/leases/${account}`;
  }

  /** Creates the data folder of a runtime that ran without an election. */
  async fill(more: (view: number) => Partial<Batch> = () => ({})): Promise<void> {
    const store = new Checkpoint(new SqliteJournal({ folder: this.data }));
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await store.commit({ ...emptyBatch, deadLetters: [letter(1)], ...more(id) });
    await store.close(true);
  }
}

const letters = async (store: Checkpoint) => (await store.deadLetters({})).length;

test("positions that were on their way into the Secrets when the process ended are carried over again", async () => {
  const one = await Pod.make();
  await one.fill();
  const request = one.transport.json.bind(one.transport);
  let writes = 0;
  one.transport.json = (call, limit) => {
    const secret = call.method === "PUT" && call.path.includes("/secrets/");
    return secret && ++writes > 1 ? Promise.reject(new Error("the process is gone")) : request(call, limit);
  };
  const dead = one.open("kubernetes");
  dead.catch(() => undefined);
  await until("it dies on the way", 20_000, async () => writes > 1);
  one.transport.json = request;
  const next = await one.open("kubernetes");
  expect([await letters(next), await one.place, next.previousEnd]).toEqual([1, "kubernetes", "clean"]);
  await next.close(false);
});

test("positions are whole at the next start, whichever write a process dies at on their way into the Secrets and back", async () => {
  const one = await Pod.make();
  await one.fill();
  for (const [from, to, place] of [
    ["sqlite", "kubernetes", "kubernetes"],
    ["kubernetes", "sqlite", `sqlite/${pod}`],
  ] as const) {
    // The first write acquires the Lease.
    for (let write = 2; await one.killed(to, write); write++) {
      // Once they are migrated, the recorded last process is the killed one. Secrets that it opened record it, too.
      const isUntouched = from === "sqlite" && (await one.place) !== place;
      const ends = isUntouched ? ["clean"] : ["clean", "killed", "power-loss"];
      const store = await one.open(to);
      expect(await letters(store), `${to} ${write}`).toBe(1);
      expect(await store.views("copy"), `${to} ${write}`).toHaveLength(1);
      expect(ends, `${to} ${write}`).toContain(store.previousEnd);
      await store.close(true);
      await (await one.open(from)).close(true);
    }
    expect(await one.place).toBe(place);
  }
}, 150_000);

test("a folder that another process still holds is waited for, and its positions are carried over", async () => {
  const one = await Pod.make();
  await one.fill();
  const holder = new Checkpoint(new SqliteJournal({ folder: one.data }));
  const opening = one.open("kubernetes");
  await until("it waits", 20_000, async () => one.lines.some((line) => line.includes("WF_CHECKPOINT_LOCKED")));
  await holder.close(true);
  const opened = await opening;
  expect(await letters(opened)).toBe(1);
  await opened.close(false);
});

test("positions that the Secrets cannot hold are refused with what to do, and stay in the folder", async () => {
  const one = await Pod.make();
  const unlike = (): string => randomBytes(1_000).toString("base64");
  const state = () => ({
    uid: unlike(),
    resourceVersion: resourceVersion("5"),
    hash: "",
    deleted: false,
    matched: true,
    body: undefined,
  });
  const known = (view: number) =>
    Array.from({ length: 5_000 }, (_, at) => ({ view, key: `team/${at}`, state: state() }));
  await one.fill((view) => ({ known: known(view) }));
  await expect(one.open("kubernetes")).rejects.toMatchObject({ code: "WF_CHECKPOINT_FULL" });
  const back = await one.open("sqlite");
  let kept = 0;
  for (const { id } of await back.views()) await back.known(id, () => kept++);
  expect([kept, await one.place]).toEqual([5_000, `sqlite/${pod}`]);
  await back.close(false);
}, 40_000);

test("of dead letters the Secrets keep as many bodies as are their share; all of them stay in the folder", async () => {
  const one = await Pod.make();
  const deadLetters = Array.from({ length: 20 }, () => ({ ...letter(1), body: randomBytes(100_000) }));
  await one.fill(() => ({ deadLetters }));
  const moved = await one.open("kubernetes");
  const dropped = (await moved.deadLetters()).map(({ bodyDropped }) => bodyDropped);
  expect(dropped).toHaveLength(20);
  // The newest keep their bodies.
  expect([dropped[0], dropped.at(-1)]).toEqual([true, false]);
  await moved.close(true);
}, 40_000);

test("positions that moved back before the Lease could say so are found on the volume", async () => {
  const one = await Pod.make();
  await one.fill();
  await (await one.open("kubernetes")).close(true);
  await (await one.open("sqlite")).close(true);
  await admin.patch(one.lease, { metadata: { annotations: { "watchfire.dev/positions": "kubernetes" } } });
  const again = await one.open("kubernetes");
  expect([await letters(again), await one.place]).toEqual([1, "kubernetes"]);
  await again.close(false);
});

test("a clean end counts as one also in Secrets that had been left for a volume before", async () => {
  const one = await Pod.make();
  await one.fill();
  await (await one.open("kubernetes")).close(true);
  await (await one.open("sqlite")).close(true);
  await (await one.open("kubernetes")).close(true);
  const next = await one.open("kubernetes");
  expect(next.previousEnd).toBe("clean");
  await next.close(false);
});
