import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Result, watchfire } from "../cli/run.ts";
import type { Replica, ReplicaOptions } from "../tools/replica.ts";
import { until } from "../tools/until.ts";
import type { ReplicasFixture } from "./replicas-fixture.ts";
import type { Verdict } from "./verdict.ts";

/** Operations of the writer in each part of a drill. */
const operations = 150;

/** A store, as replicas and commands name it. */
export interface DrilledStore extends Pick<ReplicaOptions, "store" | "fleet" | "nats"> {
  /** Loses the store after its replica has ended. Default: it is kept, and is newer than the backup. */
  readonly lose?: (data: string) => Promise<void>;
}

/** The results of a drill. */
export interface Drill {
  readonly whileRunning: Result;
  /** The restore over newer checkpoints without --yes. `undefined` if the store was lost. */
  readonly unasked: Result | undefined;
  readonly restored: Result;
  readonly verdict: Verdict;
}

/**
 * Takes a backup while a replica works and more is written, lets it work on, ends it, loses its store, restores the backup, and
 * starts a replica again. Writing continues meanwhile.
 */
export async function drill(on: ReplicasFixture, kubeconfig: string, of: DrilledStore): Promise<Drill> {
  const { lose, ...store } = of;
  const folder = await mkdtemp(join(tmpdir(), "watchfire-drill-"));
  const file = join(folder, "backup.db");
  const pod = "watchfire-0";
  const first = await on.start(store.store, { ...store, pod });
  const { data } = first.options;
  const nats = store.nats ?? store.fleet?.nats;
  const where =
    store.store === "sqlite"
      ? ["--data", data]
      : ["--store", store.store, "--kubeconfig", kubeconfig, "--namespace", on.namespace];
  const options = nats === undefined ? where : [...where, "--nats", nats];
  try {
    await isReady(first);
    await on.load(operations);
    on.write(operations);
    const taken = await watchfire(["backup", "--to", file, ...options]);
    if (taken.status !== 0) throw new Error(`no backup: ${taken.stderr}`);
    await on.load(operations);
    const whileRunning = await watchfire(["restore", "--from", file, ...options]);
    first.signal("SIGTERM");
    await first.ended();
    on.write(operations);
    await lose?.(data);
    const unasked = lose ? undefined : await watchfire(["restore", "--from", file, ...options]);
    const restored = await watchfire(["restore", "--from", file, ...(lose ? [] : ["--yes"]), ...options]);
    if (restored.status !== 0) throw new Error(`not restored: ${restored.stderr}`);
    const second = await on.start(store.store, { ...store, pod });
    await isReady(second);
    await on.load(operations);
    const verdict = await on.verdict();
    await second.kill();
    return { whileRunning, unasked, restored, verdict };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const isReady = (replica: Replica) =>
  until(`${replica.name} is ready`, 60_000, async () => (await replica.read("/readyz")).ok);
