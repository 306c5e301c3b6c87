import { expect, it } from "vitest";
import { noStates } from "../../deploy/dashboard/known-metrics.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { batchDelivery } from "../../runtime/engine/batch/batching-runner.ts";
import { type Delivery, type Outcome, run } from "../../runtime/engine/delivery/delivery.ts";
import type { SourceSpec } from "../../runtime/informer/fanout/source-spec.ts";
import type { Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import type { Informers } from "../../runtime/informer/informers.ts";
import { eachItem } from "../../runtime/manifest/field-path.ts";
import { Metrics } from "../../runtime/observe/metrics.ts";
import { FreshRunner } from "../../runtime/reads/fresh-runner.ts";
import { Reads } from "../../runtime/reads/reads.ts";
import { promisedRunner } from "../engine/promised-runner.ts";
import { trigger } from "../rbac/trigger.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { read, reading } from "./manifest.ts";

/** Reads with sources that the test controls. */
function fixture(limit = 1 << 30) {
  const clock = new VirtualClock();
  const sources = new Map<Subscriber, SourceSpec>();
  const refused: string[] = [];
  let rewinds = 0;
  const watches = {
    rewindsOf: () => rewinds,
    subscribe(spec: SourceSpec, subscriber: Subscriber) {
      sources.set(subscriber, spec);
      return { close: async () => void sources.delete(subscriber) };
    },
  } as unknown as Informers;
  const reads = new Reads({
    watches,
    clock,
    limit,
    specOf: ({ apiVersion, kind, labelSelector }, namespace) => ({ apiVersion, kind, labelSelector, namespace }),
    refused: (name, { code }) => refused.push(`${name} ${code}`),
  });
  const runs: string[] = [];
  const inner = promisedRunner(({ id }) => {
    runs.push(id);
    return { type: "ok", durationMs: 0 };
  });
  /** Starts attempts of one store's functions; several stores share the reads. */
  const another = () => new FreshRunner(inner, reads, clock);
  const runner = another();
  const eventOf = (name: string, version: number): Delivery => {
    const object = { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "o", uid: "u" };
    const event = { function: name, trigger: "t", id: `${name}@${version}`, type: "Modified", object } as const;
    const more = { attempt: 1, redelivered: false, flags: {}, body: Buffer.from("{}"), timeoutMs: 1 };
    return { ...event, ...more, resourceVersion: String(version) };
  };
  const give = (name: string, version = 1) => run(runner, eventOf(name, version));
  /** Completes lists of so many objects of so many bytes, for each followed source or for those of one kind. */
  const list = (count: number, bytes: number, kind?: string) => {
    for (const [subscriber, spec] of sources) {
      if (kind !== undefined && spec.kind !== kind) continue;
      const receiver = subscriber.list("initial", undefined);
      for (let index = 0; index < count && sources.has(subscriber); index++) {
        const meta = { namespace: "a", name: `o${index}`, uid: "u", resourceVersion: resourceVersion("1") };
        const body = Buffer.from(JSON.stringify({ metadata: meta, data: "x".repeat(bytes) }));
        receiver.item({ type: "Added", meta, body, receivedAt: 0 });
      }
      if (sources.has(subscriber)) receiver.end(resourceVersion("10"));
    }
  };
  const rewind = () => void rewinds++;
  return { clock, sources, refused, reads, runs, runner, another, eventOf, give, list, rewind };
}

it("an event that waits for its reads begins once they have listed, whoever else hears of them, and comes or goes", async () => {
  const { reads, runs, runner, another, eventOf, list } = fixture();
  const other = another();
  for (const name of ["f", "g", "h"]) reads.set(manifestOf(name));
  void run(runner, eventOf("f", 1));
  void run(other, eventOf("g", 1));
  another().close();
  const gone = another();
  void run(gone, eventOf("h", 1));
  gone.close();
  list(1, 10);
  expect(runs.toSorted()).toEqual(["f@1", "g@1"]);
});

const manifestOf = (name: string, cacheBytes = 1 << 20) => reading([read()], { name, cacheBytes });

it("a list by an index is refused while its namespace has an object with too many values, and no other list is", () => {
  const { reads, sources } = fixture();
  const indexes = [{ name: "byOwner", field: ["owners", eachItem, "uid"] }];
  reads.set(reading([read({ indexes })], { name: "f", cacheBytes: 1 << 20 }));
  const [subscriber] = sources.keys();
  const receiver = subscriber?.list("initial", undefined);
  const owned = (namespace: string, name: string, count: number) => {
    const meta = { namespace, name, uid: "u", resourceVersion: resourceVersion("1") };
    const owners = Array.from({ length: count }, (_, at) => ({ uid: `u${at}` }));
    receiver?.item({
      type: "Added",
      meta,
      body: Buffer.from(JSON.stringify({ metadata: meta, owners })),
      receivedAt: 0,
    });
  };
  owned("a", "crowd", 1001);
  owned("b", "some", 1000);
  receiver?.end(resourceVersion("10"));
  const listed = (more: object) => JSON.parse(reads.list("f", { ...read(), ...more })).items.length;
  const index = { byOwner: "u1" };
  const refusal = /^WF_READS_INDEX: v1 ConfigMap a\/crowd has more than 1000 values for the index byOwner/;
  expect(() => listed({ namespace: undefined, index })).toThrow(refusal);
  expect(() => listed({ namespace: "a", index: { byOwner: "none" } })).toThrow(refusal);
  expect([listed({ namespace: "b", index }), listed({ namespace: "a" }), listed({})]).toEqual([1, 1, 2]);
});

it("functions that read the same share one source, and the last to go ends it", () => {
  const { reads, sources, list } = fixture();
  reads.set(manifestOf("f"));
  reads.set(manifestOf("g"));
  expect(sources.size).toBe(1);
  list(3, 10);
  for (const name of ["f", "g"]) expect(JSON.parse(reads.list(name, read())).items).toHaveLength(3);
  reads.delete("f");
  expect(sources.size).toBe(1);
  expect(() => reads.list("f", read())).toThrow(/WF_READS_UNDECLARED/);
  reads.delete("g");
  expect(sources.size).toBe(0);
});

it("a function whose own limit is reached stands still alone, and tries again after 5 minutes", async () => {
  const { reads, sources, refused, runs, give, list, clock } = fixture();
  reads.set(manifestOf("small", 1000));
  reads.set(manifestOf("large"));
  void give("small");
  void give("large");
  list(10, 1000);
  await clock.advance(60_000);
  expect([refused, runs, sources.size]).toEqual([["small WF_READS_TOO_LARGE"], ["large@1"], 1]);
  expect(reads.of("small")?.fault?.message).toMatch(/more than the 1000 bytes of .*resources\.cache/);
  for (const [subscriber] of sources) {
    const receiver = subscriber.list("relist", undefined);
    receiver.end(resourceVersion("20"));
  }
  await clock.advance(300_000);
  expect([runs, reads.of("small")?.fault]).toEqual([["large@1", "small@1"], undefined]);
});

it("all functions together take no more than the runtime may, be it in the middle of a list", () => {
  const { reads, sources, refused, list } = fixture(5000);
  reads.set(manifestOf("f"));
  list(100, 1000);
  expect([refused, sources.size]).toEqual([["f WF_READS_SHARE"], 0]);
  const suspensions = [{ function: "f", count: 1 }];
  expect(reads.totals()).toEqual({ objects: 0, bytes: 0, limit: 5000, suspensions });
  expect(reads.of("f")?.fault?.message).toMatch(/`--cache-limit`, which is 5000 bytes/);
});

it("a function that is back counts as large as it was, before it knows which namespaces it reads", async () => {
  const { reads, sources, refused, list, clock } = fixture(10_000);
  const sum = () => [...(reads.of("f")?.demand.values() ?? [])].reduce((total, bytes) => total + bytes, 0);
  const namespaces = { type: "labels", labelSelector: "team" } as const;
  reads.set(reading([read({ namespaces })], { name: "f", cacheBytes: 1 << 20 }));
  const [[scope] = []] = sources;
  const receiver = scope?.list("initial", undefined);
  const meta = { namespace: "", name: "a", uid: "a", resourceVersion: resourceVersion("1") };
  receiver?.item({ type: "Added", meta, body: Buffer.from('{"metadata":{}}'), receivedAt: 0 });
  receiver?.end(resourceVersion("2"));
  await clock.advance(1);
  list(5, 1000, "ConfigMap");
  const before = sum();
  expect(before).toBeGreaterThan(5000);
  reads.set(reading([read({ kind: "Pod" })], { name: "g", cacheBytes: 1 << 20 }));
  list(2, 1500, "Pod");
  expect(refused).toEqual(["f WF_READS_SHARE"]);
  reads.delete("g");
  await clock.advance(41_000);
  expect([reads.of("f")?.fault, [...sources.values()].map(({ kind }) => kind)]).toEqual([undefined, ["Namespace"]]);
  expect(sum()).toBe(before);
});

it("each read of each function is measured: whether it has listed, what it keeps, and how old that is", async () => {
  const { reads, sources, list, clock } = fixture();
  const metrics = new Metrics();
  const states = { ...noStates, reads: () => reads.reports(), cache: () => reads.totals() };
  const shown = async () => (await metrics.text(states)).split("\n").filter((line) => /^watchfire_reads?_/.test(line));
  reads.set(manifestOf("f"));
  reads.set(manifestOf("g"));
  const of = (name: string) => `{function="${name}",api_version="v1",kind="ConfigMap"}`;
  expect(await shown()).toContain(`watchfire_read_synced${of("f")} 0`);
  expect((await shown()).join()).not.toContain("age_seconds");
  list(3, 1000);
  await clock.advance(5_000);
  const { bytes } = reads.totals();
  expect(bytes).toBeGreaterThan(3000);
  for (const name of ["f", "g"]) {
    expect(await shown()).toEqual(
      expect.arrayContaining([
        `watchfire_read_synced${of(name)} 1`,
        `watchfire_read_objects${of(name)} 3`,
        `watchfire_read_bytes${of(name)} ${bytes}`,
        `watchfire_read_age_seconds${of(name)} 5`,
      ]),
    );
  }
  expect(await shown()).toContain(`watchfire_reads_bytes ${bytes}`);
  expect(await shown()).toContain(`watchfire_reads_limit_bytes ${1 << 30}`);
  expect((await shown()).join()).not.toContain("suspended");
  reads.set(manifestOf("h", 100));
  expect(await shown()).toContain('watchfire_reads_suspended_total{function="h"} 1');
  reads.delete("h");
  reads.delete("g");
  expect((await shown()).join()).not.toContain('"g"');
  expect(sources.size).toBe(1);
});

it("no attempt begins before every read has listed, and one that is recalled meanwhile has not begun", async () => {
  const { reads, runs, runner, give, list, clock } = fixture();
  reads.set(reading([read(), read({ kind: "Node" })], { name: "f", cacheBytes: 1 << 20 }));
  const recalled = give("f", 1);
  await clock.advance(120_000);
  runner.recall("f");
  expect(await recalled).toEqual({ type: "unbegun" });
  const given = give("f", 2);
  list(1, 10, "ConfigMap");
  await clock.advance(120_000);
  expect(runs).toEqual([]);
  list(1, 10, "Node");
  expect(await given).toMatchObject({ type: "ok" });
  expect(runs).toEqual(["f@2"]);
});

it("an event that no read comes up to is listed for after a second, and fails after 30 with a code", async () => {
  const { reads, runs, sources, give, list, clock } = fixture();
  reads.set(manifestOf("f"));
  list(1, 10);
  const [first] = sources.keys();
  let outcome: Outcome | undefined;
  void give("f", 50).then((ended) => {
    outcome = ended;
  });
  await clock.advance(999);
  expect(sources.has(first as Subscriber)).toBe(true);
  let joined = 0;
  const { set } = Map.prototype;
  sources.set = (...entry) => {
    joined++;
    return set.apply(sources, entry) as typeof sources;
  };
  await clock.advance(1);
  expect(joined).toBe(1);
  await clock.advance(28_999);
  expect(outcome).toBeUndefined();
  await clock.advance(1);
  expect(outcome).toMatchObject({ type: "failed", error: { code: "WF_READS_BEHIND" } });
  expect(runs).toEqual([]);
});

it("a read of other objects than the trigger's keeps no event waiting", async () => {
  const { reads, runs, give, list } = fixture();
  reads.set(reading([read({ labelSelector: "a=b" })], { name: "f", cacheBytes: 1 << 20 }));
  list(1, 10);
  await give("f", 1000);
  expect(runs).toEqual(["f@1000"]);
});

it("a batch waits until its newest event is there, be it in the namespaces that are named", async () => {
  const { reads, runs, runner, eventOf, sources, list, clock } = fixture();
  const named = { namespaces: { type: "names", names: ["a"] } } as const;
  const triggers = [trigger({ name: "t", ...named })];
  reads.set(reading([read(named)], { name: "f", cacheBytes: 1 << 20, triggers }));
  list(1, 10);
  void run(runner, batchDelivery([eventOf("f", 5), eventOf("f", 12)]));
  await clock.advance(100);
  expect(runs).toEqual([]);
  for (const [subscriber] of sources) subscriber.bookmark(resourceVersion("12"));
  await clock.advance(1);
  expect(runs).toEqual(["f@5"]);
});

it("a run of a key waits until each change that woke it is there, and a deletion among them has taken its object away", async () => {
  const { reads, runs, runner, eventOf, sources, list, clock } = fixture();
  const triggers = [trigger({ name: "t" }), trigger({ name: "pods", kind: "Pod" })];
  reads.set(reading([read({ kind: "Pod" })], { name: "f", cacheBytes: 1 << 20, triggers }));
  list(1, 10);
  const [pods] = sources.keys();
  const object = (name: string) => ({ namespace: "a", name, uid: "u" });
  const seen = [
    { trigger: "pods", type: "Modified", object: object("o1"), resourceVersion: "12" },
    // A deletion that a list found has the object's last resourceVersion.
    { trigger: "pods", type: "Deleted", object: object("o0"), resourceVersion: "1" },
  ] as const;
  const given = run(runner, { ...eventOf("f", 5), causes: [], seen });
  await clock.advance(100);
  pods?.bookmark(resourceVersion("12"));
  await clock.advance(100);
  expect(runs).toEqual([]);
  const meta = { ...object("o0"), resourceVersion: resourceVersion("13") };
  pods?.change({ type: "Deleted", meta, body: Buffer.from("{}"), receivedAt: 0 });
  expect(await given).toMatchObject({ type: "ok" });
  const late = run(runner, { ...eventOf("f", 6), causes: [], seen: [{ ...seen[0], resourceVersion: "50" }] });
  await clock.advance(30_000);
  expect(await late).toMatchObject({ error: { message: expect.stringContaining("trigger pods takes is older") } });
});

it("an event of a namespace that the labels no longer choose waits for nothing", async () => {
  const { reads, runs, give, sources, list, clock } = fixture();
  const chosen = { namespaces: { type: "labels", labelSelector: "team" } } as const;
  const triggers = [trigger({ name: "t", ...chosen })];
  reads.set(reading([read(chosen)], { name: "f", cacheBytes: 1 << 20, triggers }));
  const [[scope] = []] = sources;
  const meta = { namespace: "", name: "a", uid: "a", resourceVersion: resourceVersion("1") };
  const namespace = { meta, body: Buffer.from('{"metadata":{}}'), receivedAt: 0 };
  const receiver = scope?.list("initial", undefined);
  receiver?.item({ type: "Added", ...namespace });
  receiver?.end(resourceVersion("2"));
  await clock.advance(1);
  list(1, 10, "ConfigMap");
  void give("f", 50);
  await clock.advance(1);
  expect(runs).toEqual([]);
  scope?.change({ type: "Deleted", ...namespace });
  await clock.advance(1);
  expect(runs).toEqual(["f@50"]);
});

it("an answer has 16 MiB at most, and a smaller question has one", () => {
  const { reads, list } = fixture();
  reads.set(reading([read()], { name: "f", cacheBytes: 1 << 30 }));
  list(20, 1 << 20);
  expect(() => reads.list("f", read())).toThrow(/WF_READS_ANSWER .*16777216 bytes|WF_READS_ANSWER: .*16777216 bytes/);
  expect(JSON.parse(reads.get("f", { ...read(), namespace: "a", name: "o1" })).metadata.name).toBe("o1");
});

it("an event that waited for its reads leaves no timer behind, whether it begins or is given back", async () => {
  const { clock, reads, runner, give, list, runs } = fixture();
  reads.set(manifestOf("f"));
  const begun = give("f");
  list(1, 10);
  await begun;
  expect([runs, clock.timers]).toEqual([["f@1"], 0]);
  const back = give("f", 20);
  expect(clock.timers).toBeGreaterThan(0);
  runner.recall("f");
  expect([(await back).type, clock.timers]).toEqual(["unbegun", 0]);
});

it("an object's state is known to a function that reads whole objects of its kind there, and to no other", () => {
  const { reads, list } = fixture();
  const ref = { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "o0" };
  reads.set(reading([read({ namespaces: { type: "names", names: ["a"] } })]));
  reads.set(reading([read({ object: "Metadata" })], { name: "metadata" }));
  list(1, 10);
  const kept = reads.kept("f", ref);
  expect(kept?.body.toString("utf8")).toContain('"name":"o0"');
  expect(kept?.state).toBe(reads.stateOf("f", ref, "1"));
  expect(kept?.state).not.toBe(reads.stateOf("f", ref, "2"));
  expect(reads.kept("f", { ...ref, name: "other" })).toBeUndefined();
  for (const [name, namespace] of [
    ["f", "b"],
    ["metadata", "a"],
    ["g", "a"],
  ] as const) {
    expect(reads.kept(name, { ...ref, namespace })).toBeUndefined();
    expect(reads.stateOf(name, { ...ref, namespace }, "1")).toBeUndefined();
  }
});

it("an object's state before a rewind of the cluster is another one than after it, with the same version", () => {
  const { reads, list, rewind } = fixture();
  const ref = { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "o0" };
  reads.set(reading([read()]));
  list(1, 10);
  const before = reads.kept("f", ref)?.state;
  rewind();
  expect(reads.kept("f", ref)?.state).not.toBe(before);
});
