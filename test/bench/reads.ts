// npm run bench:reads -- [objects]: measures `ctx.cache` with 50,000 objects: their memory, the time of their first list, the
// time of a lookup in the parent and in a handler, and the age of what a lookup returns while 1,000 of them change each second.
// The API server runs in a separate process, over TLS on loopback.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { answerFromCache } from "../../runtime/access/cache-calls.ts";
import { systemClock } from "../../runtime/base/clock.ts";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import { silentObserver } from "../../runtime/informer/fanout/observer.ts";
import type { Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import { Informers } from "../../runtime/informer/informers.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { connectKubeconfig } from "../../runtime/kube/kubeconfig.ts";
import { Reads } from "../../runtime/reads/reads.ts";
import { Sandbox } from "../../runtime/sandbox/host/sandbox.ts";
import { manifestOf } from "../access/api-server.ts";
import { bundleFunction } from "../tools/bundle.ts";
import { until } from "../tools/until.ts";
import { group, kindOf, type ToServer } from "./many-objects.ts";

const objects = Number(process.argv[2] ?? 50_000);
/** Number of namespaces of the objects. Each object has one of ten labels, and one of so many images. */
const namespaces = 50;
const load = { type: "change", perSecond: 1000, seconds: 20 } as const satisfies ToServer;
const kind = { apiVersion: `${group}/v1`, kind: kindOf(0) };
const folder = mkdtempSync(join(tmpdir(), "watchfire-reads-"));
const kubeconfig = join(folder, "kubeconfig");
const print = (line: string) => process.stdout.write(`${line}\n`);

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
function heldBytes(): number {
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const server = fork(
  join(import.meta.dirname, "many-objects-server.ts"),
  ["1", String(objects), kubeconfig, String(namespaces), "stamped"],
  { execArgv: [] },
);
await once(server, "message");
const { transport } = await connectKubeconfig({ file: kubeconfig, context: undefined, environment: {} });
const discovery = new Discovery(transport, systemClock);
const all = new Informers({ transport, discovery, clock: systemClock, random: Math.random, observer: silentObserver });

/** Time from the server's write to the end of the call after which every lookup sees the change, in milliseconds. */
const ages: number[] = [];
const watches = {
  subscribe(spec: Parameters<typeof all.subscribe>[0], subscriber: Subscriber) {
    const change = subscriber.change.bind(subscriber);
    subscriber.change = (received) => {
      change(received);
      const [, sentAt] = /"sentAt":([\d.]+)/.exec(received.body.toString()) ?? [];
      if (sentAt !== undefined) ages.push(performance.timeOrigin + performance.now() - Number(sentAt));
    };
    return all.subscribe(spec, subscriber);
  },
} as Informers;
const reads = new Reads({
  watches,
  clock: systemClock,
  specOf: ({ apiVersion, kind }) => ({ apiVersion, kind }),
  limit: 2 ** 40,
  refused: (_, fault) => print(fault.message),
});

const before = heldBytes();
const begun = performance.now();
const indexes = [{ name: "byReplicas", field: ["spec", "replicas"] }];
const selection = { namespaces: { type: "all" }, labelSelector: "", fieldSelector: "", object: "Full" } as const;
reads.set(manifestOf({ cacheBytes: 2 ** 40, reads: [{ ...kind, ...selection, indexes }] }));
await until("the first list", 120_000, async () => reads.of("f")?.isReady);
const listMs = performance.now() - begun;
const held = heldBytes() - before;
const { bytes: counted } = reads.totals();
const text = [...Array(100).keys()].reduce(
  (sum) => sum + (reads.list("f", { ...kind, namespace: "team-1" }).length * namespaces) / objects / 100,
  0,
);
print(`${objects} objects of ${text.toFixed(0)} bytes: first list in ${listMs.toFixed(0)} ms`);
print(
  `memory: ${(held / 2 ** 20).toFixed(1)} MiB, ${(held / objects).toFixed(0)} bytes an object; counted: ${(counted / objects).toFixed(0)}`,
);

const name = `thing-${(1).toString(36).padStart(5, "0")}`;
const looks: readonly (readonly [string, string, object])[] = [
  ["get", "cache.get", { ref: { ...kind, namespace: "team-1", name } }],
  ["list of a namespace", "cache.list", { ...kind, namespace: "team-1" }],
  ["list by a label in a namespace", "cache.list", { ...kind, namespace: "team-1", labelSelector: "app=service-1" }],
  ["list by labels that none has", "cache.list", { ...kind, labelSelector: "app=none" }],
  ["list by an index", "cache.list", { ...kind, index: { byReplicas: "1" } }],
  ["list by an index in a namespace", "cache.list", { ...kind, namespace: "team-1", index: { byReplicas: "1" } }],
];
const sandbox = new Sandbox({
  executors: 1,
  clock: systemClock,
  log: { info: () => {}, warn: () => {} },
  hostCalls: {
    call: async (_, operation, args) => ({
      ok: true,
      json: answerFromCache(reads, "f", operation as "cache.list", JSON.parse(args)),
    }),
  },
  output: { log: () => {}, metric: () => {} },
});
const median = (figures: readonly number[], share = 0.5) =>
  figures.toSorted((a, b) => a - b)[Math.floor(figures.length * share)] ?? Number.NaN;

for (const [what, operation, args] of looks) {
  const inParent: number[] = [];
  let items = 0;
  for (let times = 0; times < 30; times++) {
    const from = performance.now();
    const json = answerFromCache(reads, "f", operation as "cache.list", args as never);
    inParent.push(performance.now() - from);
    items = JSON.parse(json).items?.length ?? 1;
  }
  const handler = join(folder, "handler.ts");
  const [method, argument] = operation === "cache.get" ? ["get", (args as { ref: object }).ref] : ["list", args];
  const rounds = items > 1000 ? 3 : 30;
  writeFileSync(
    handler,
    `export default (_, ctx) => { for (let times = 0; times < ${rounds}; times++) ctx.cache.${method}(${JSON.stringify(argument)}); };`,
  );
  const bundle = await bundleFunction({ handler });
  await sandbox.load({ name: "f", resources: { memoryBytes: 512 * 2 ** 20, cpuPerEventMs: 60_000 } }, bundle, {});
  const inHandler: number[] = [];
  for (let times = 0; times < 7; times++) {
    const object = { ...kind, namespace: "team-1", name, uid: "u" };
    const delivery = {
      function: "f",
      trigger: "t",
      id: `${times}`,
      type: "Modified",
      object,
      resourceVersion: "1",
    } as const;
    const more = { attempt: 1, redelivered: false, flags: {}, body: Buffer.from("{}"), timeoutMs: 60_000 };
    const outcome = await run(sandbox, { ...delivery, ...more });
    if (outcome.type !== "ok") throw new Error(JSON.stringify(outcome));
    inHandler.push(outcome.durationMs / rounds);
  }
  const figures = `parent ${median(inParent).toFixed(3)} ms, handler ${median(inHandler).toFixed(3)} ms`;
  print(`${what.padEnd(32)} ${String(items).padStart(6)} objects: ${figures}`);
}

server.send(load);
await once(server, "message");
await until("all changes", 60_000, async () => ages.length >= load.perSecond * load.seconds);
const shares = [0.5, 0.99, 1 - 1 / ages.length].map((share) => median(ages, share).toFixed(1));
print(
  `staleness at ${load.perSecond} changes/s for ${load.seconds} s: p50 ${shares[0]} ms, p99 ${shares[1]} ms, most ${shares[2]} ms`,
);
reads.delete("f");
await sandbox.close(0);
await all.close();
await transport.close();
server.disconnect();
