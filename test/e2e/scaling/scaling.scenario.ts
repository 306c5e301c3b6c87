// npm run bench:fleet: measures the events per second of a fleet by its number of replicas. The load is many functions, or one
// function in 8 shards, assigned by the objects' keys or by their namespaces. Each replica is limited to SCALING_CPU thousandths
// of a core (default 300). The objects exist before, so no writer takes CPU time. The functions are added to a running fleet, and
// receive all objects.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import type { Body } from "../../target/client.ts";
import { natsProgram } from "../../tools/assets.ts";
import { until } from "../../tools/until.ts";
import { say } from "../ledger.ts";
import { NatsCluster } from "../nats-cluster.ts";
import { admin, ensureNamespace, metricsOf, Release, removeNamespace, statusOf } from "../release.ts";

/** CPU of each replica in thousandths of a core; two thirds are for the runtime. */
const cpu = Number(process.env.SCALING_CPU ?? 300);
const limits = [`resources.limits.cpu=${(cpu * 2) / 3}m`, `executor.resources.limits.cpu=${cpu / 3}m`];
const requests = ["resources.requests.cpu=10m", "executor.resources.requests.cpu=10m"];
/** The shards of the single function are distributed evenly over the replicas. */
const loads = [
  { what: "48 functions", functions: 48, objects: 3_000, namespaces: 1, shards: 1, slots: 64 },
  { what: "one function in 8 shards", functions: 1, objects: 60_000, namespaces: 1, shards: 8, slots: 8 },
  { what: "one function in 8 shards by namespace", functions: 1, objects: 60_000, namespaces: 40, shards: 8, slots: 8 },
] as const;
type Load = (typeof loads)[number];
const sampleMs = 1_000;

interface Sample {
  readonly atMs: number;
  /** Number of handled events of each pod. */
  readonly done: readonly number[];
  /** Idle CPU time of the whole machine, in milliseconds. */
  readonly idleMs: number;
}

describe.skipIf(natsProgram === undefined)(`a fleet of replicas with ${cpu}m CPU each`, () => {
  let nats: NatsCluster;

  beforeAll(async () => {
    nats = await NatsCluster.start();
  });
  afterAll(() => nats?.remove());

  describe.each(loads)("and $what", (load) => {
    const { functions, objects, slots, namespaces } = load;
    const of = `${functions}-${namespaces}`;
    const places = Array.from({ length: namespaces }, (_, number) => `scaling-objects-${of}-${number}`);
    const folder = mkdtempSync(join(tmpdir(), "watchfire-scaling-"));

    beforeAll(async () => {
      writeFunctions(folder, places, load);
      for (const place of places) {
        await removeNamespace(place);
        await ensureNamespace(place);
        for (let from = 0; from < objects / namespaces; from += 20) {
          const names = Array.from({ length: 20 }, (_, index) => `item-${from + index}`);
          const path = `/api/v1/namespaces/${place}/configmaps`;
          await Promise.all(names.map((name) => admin.post(path, { metadata: { name }, data: { key: "value" } })));
        }
      }
    });
    afterAll(async () => {
      rmSync(folder, { recursive: true });
      await Promise.all(places.map(removeNamespace));
    });

    const rates = new Map<number, number>();

    test.each([1, 2, 4])("of %d", async (replicas) => {
      // A new namespace has no checkpoints. Leases of an earlier run would refer to streams that are gone.
      const namespace = `scaling-${of}-${replicas}`;
      await removeNamespace(namespace);
      const release = await Release.into(namespace);
      await Promise.all(places.map((place) => grant(release.namespace, place)));
      const store = [`slots=${slots}`, "identity=runtime", "store.type=nats", `nats.url=${nats.url}`];
      await release.helm("install", "runtime", `replicas=${replicas}`, ...store, ...limits, ...requests);
      const pods = await until("all slots run", 120_000, async () => {
        const found = await release.pods();
        const running = await Promise.all(found.map(runningSlots)).catch(() => []);
        const share = Math.floor(slots / replicas);
        return running.length === replicas && running.every((count) => count >= share) && found;
      });
      await release.deploy(folder);
      const samples = [await sample(pods)];
      await until("all is handled", 400_000, async () => {
        await new Promise((resolve) => setTimeout(resolve, sampleMs));
        const next = await sample(pods).catch(() => undefined);
        if (next) samples.push(next);
        return next && sum(next.done) >= functions * objects;
      });
      const { rate, seconds, idle } = rateOf(samples);
      rates.set(replicas, rate);
      const factor = rate / (rates.get(1) ?? rate);
      const shares = samples.at(-1)?.done.join(" + ");
      say(
        `${replicas} replicas: ${Math.round(rate)} events/s, ${factor.toFixed(2)}x, over ${seconds.toFixed(0)} s in which all worked; ` +
          `${shares} events; ${Math.round(idle * 100)}% of the machine idle`,
      );
      expect(sum(samples.at(-1)?.done ?? [])).toBe(functions * objects);
      await release.uninstall();
    });
  });
});

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

const runningSlots = async (pod: Body): Promise<number> =>
  ((await statusOf(pod)).fleet?.slots ?? []).filter(({ state }) => state === "running").length;

async function sample(pods: readonly Body[]): Promise<Sample> {
  const done = await Promise.all(
    pods.map(async (pod) => {
      const counts = (await metricsOf(pod)).matchAll(/^watchfire_events_total\{.*outcome="ok".*\} (\d+)$/gm);
      return sum([...counts].map(([, count]) => Number(count)));
    }),
  );
  return { atMs: performance.now(), done, idleMs: sum(cpus().map(({ times }) => times.idle)) };
}

/**
 * Events per second while every pod worked: from the time when each has done 2 % of its share until the first has done 98 %.
 */
function rateOf(samples: readonly Sample[]): { rate: number; seconds: number; idle: number } {
  const shares = samples.at(-1)?.done ?? [];
  const isAmid = ({ done }: Sample) =>
    done.every((count, pod) => count > 0.02 * (shares[pod] ?? 0) && count < 0.98 * (shares[pod] ?? 0));
  const amid = samples.filter(isAmid);
  const [first, last] = [amid[0], amid.at(-1)];
  if (!first || !last || first === last)
    throw new Error("there was no moment at which all replicas worked: take more objects");
  const ms = last.atMs - first.atMs;
  const rate = ((sum(last.done) - sum(first.done)) / ms) * 1_000;
  return { rate, seconds: ms / 1_000, idle: (last.idleMs - first.idleMs) / (ms * cpus().length) };
}

/** Writes functions that do nothing and receive all objects. */
function writeFunctions(folder: string, places: readonly string[], { functions, namespaces, shards }: Load): void {
  for (let number = 0; number < functions; number++) {
    const name = `nothing-${number}`;
    mkdirSync(join(folder, name));
    const watch = {
      apiVersion: "v1",
      kind: "ConfigMap",
      namespaceSelector: { matchNames: places },
      fieldSelector: "metadata.name!=kube-root-ca.crt",
    };
    const delivery = { shards, ...(namespaces > 1 && { shardBy: "Namespace" }) };
    const spec = { handler: "./handler.ts", triggers: [{ name: "objects", watch }], delivery };
    const manifest = { apiVersion: "watchfire.dev/v1alpha1", kind: "Function", metadata: { name }, spec };
    writeFileSync(join(folder, name, "function.yaml"), stringify(manifest));
    writeFileSync(join(folder, name, "handler.ts"), "export default () => {};\n");
  }
}

async function grant(namespace: string, place: string): Promise<void> {
  const base = `/apis/rbac.authorization.k8s.io/v1/namespaces/${place}`;
  const metadata = { name: namespace };
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"] }];
  await admin.post(`${base}/roles`, { metadata, rules });
  const subjects = [{ kind: "ServiceAccount", name: "watchfire", namespace }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: namespace };
  await admin.post(`${base}/rolebindings`, { metadata, roleRef, subjects });
}
