import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../runtime/base/clock.ts";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Bundle } from "../../runtime/bundle/bundle.ts";
import type { FunctionOffer } from "../../runtime/catalog/function-source.ts";
import { Assignees } from "../../runtime/host/components.ts";
import { LiveFunction, type LiveFunctionParts } from "../../runtime/host/live-function.ts";
import { WatchRoom } from "../../runtime/host/watch-room.ts";
import type { SourceSpec } from "../../runtime/informer/fanout/source-spec.ts";
import type { Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import { ApiError } from "../../runtime/kube/api-error.ts";
import type { FunctionManifest, Trigger } from "../../runtime/manifest/function.ts";
import { manifestOf, ownObjects } from "../access/api-server.ts";
import { change } from "../engine/fixture.ts";
import { trigger } from "../rbac/trigger.ts";
import { until } from "../tools/until.ts";
import { VirtualClock } from "../virtual-clock.ts";

const bundle = (hash: string) =>
  ({ script: "", sourceMap: "", sourceMapLength: 0, inputs: [], usesOldObject: false, hash }) as Bundle;

const offer = (hash: string, env: FunctionManifest["env"] = []) => ({
  manifest: manifestOf({ triggers: [], env }),
  origin: { type: "folder", manifest: "f.yaml" } as const,
  bundle: async () => bundle(hash),
});

const base64 = (text: string) => Buffer.from(text).toString("base64");
const token = [{ name: "TOKEN", secretKeyRef: { name: "bank", key: "token", optional: false } }];

/** A sandbox that records what it runs, a dispatcher whose attempts run until the test ends them, and one Secret. */
function fixture({
  clock = systemClock,
  first = offer("a"),
  watches,
  grants,
  opened = () => {},
}: {
  clock?: Clock;
  /** Called when the dispatcher loads the function; throws where its store would. */
  opened?: () => void;
  first?: ReturnType<typeof offer> & Pick<FunctionOffer, "shard">;
  watches?: object;
  /** The rights of its account. Default: functions have no accounts. */
  grants?: object | undefined;
} = {}) {
  const room = new WatchRoom();
  const loaded: string[] = [];
  const said: string[] = [];
  const swaps: PromiseWithResolvers<void>[] = [];
  const secret = { data: { token: base64("one") } as Record<string, string>, reads: 0, fault: undefined as unknown };
  const replace = async (_: unknown, __: unknown, swap: () => Promise<void>) => {
    const ended = Promise.withResolvers<void>();
    swaps.push(ended);
    await ended.promise;
    await swap();
  };
  const load = async (_: unknown, { hash }: Bundle, { TOKEN = "" }: Record<string, string>) => {
    loaded.push(TOKEN === "" ? hash : `${hash} ${TOKEN}`);
  };
  const json = async () => {
    secret.reads++;
    if (secret.fault) throw secret.fault;
    return { data: secret.data };
  };
  const begun: string[] = [];
  const [subscription, believes] = [() => ({}), () => true];
  const retain = (_: unknown, namespaces: readonly string[]) => void begun.push(...namespaces);
  const say = (_: unknown, message: string) => void said.push(message);
  const dispatched = async () => {
    opened();
    return { replace, subscription, believes, retain };
  };
  const parts = {
    dispatcher: { function: dispatched, remove: async () => {} },
    watches,
    sandbox: { load, unload: async () => {} },
    redactor: { learn: () => {}, forget: () => {} },
    metrics: { user: { forget: () => {} } },
    manifests: new Map(),
    assignees: new Assignees(),
    watchRoom: room,
    pauses: { heed: () => {}, heedSet: () => {} },
    pausedSets: new Map(),
    reads: { set() {}, delete() {}, of: () => undefined },
    grants,
    own: ownObjects,
    transport: { json },
    namespace: "default",
    clock,
    random: () => 0.999,
    log: { debug: () => {}, info: say, warn: say, error: say },
  } as unknown as LiveFunctionParts;
  return { live: new LiveFunction(first, parts), loaded, said, swaps, secret, begun, room };
}

test("code that is taken back while it waits for the old code's attempts does not run on", async () => {
  const { live, loaded, swaps } = fixture();
  await live.start("start");
  const changed = live.update(offer("b"));
  await until("the change waits", 5_000, async () => swaps.length === 1);
  const restored = live.update(offer("a"));
  swaps[0]?.resolve();
  await changed;
  const ended = until("it waits again", 5_000, async () => swaps.length === 2).then(() => swaps[1]?.resolve());
  await Promise.race([restored, ended]);
  await restored;
  expect(loaded).toEqual(["a", "b", "a"]);
});

/** An offer whose build ends on the test's command. */
function slow(hash: string) {
  const built = Promise.withResolvers<Bundle>();
  return { ...offer(hash), bundle: () => built.promise, built };
}

const fault = new WatchfireError("WF_MANIFEST_UNKNOWN_FIELD", { what: "colour is no field" });

test.each<[string, string, (build: PromiseWithResolvers<Bundle>) => void, readonly string[]]>([
  ["finds nothing new", "a", (build) => build.resolve(bundle("a")), []],
  ["fails", "b", (build) => build.reject(new Error("no")), []],
  ["succeeds", "b", (build) => build.resolve(bundle("b")), ["change loaded"]],
])(
  "what is refused stays refused, and is said once, where a build that began before %s",
  async (_, hash, end, says) => {
    const { live, said, swaps } = fixture();
    await live.start("start");
    const older = slow(hash);
    const brought = live.update(older);
    live.refuse([fault]);
    end(older.built);
    if (says.length > 0) await until("it waits", 5_000, async () => swaps.length === 1).then(() => swaps[0]?.resolve());
    await brought;
    expect(said).toEqual(["change refused, the old version runs on", ...says]);
    expect(live.refusal?.code).toBe("WF_MANIFEST_UNKNOWN_FIELD");
    await live.update(offer(hash === "b" && says.length > 0 ? "b" : "a"));
    expect([said.at(-1), live.refusal]).toEqual(["function mended", undefined]);
  },
);

test("a part of the manifest that is refused is said once, and the rest is taken up", async () => {
  const refused = new WatchfireError("WF_LEASE_SHARDS", { what: "its checkpoints are in one shard" });
  const { live, said, swaps } = fixture();
  await live.start("start");
  const changed = live.update({ ...offer("b"), refused });
  await until("it waits", 5_000, async () => swaps.length === 1).then(() => swaps[0]?.resolve());
  await changed;
  const once = ["change loaded", "a part of the manifest refused"];
  expect([said, live.refusal]).toEqual([once, refused]);
  await live.update({ ...offer("b"), refused });
  expect([said, live.refusal]).toEqual([once, refused]);
  await live.update(offer("b"));
  expect([said.at(-1), live.refusal]).toEqual(["function mended", undefined]);
});

test("a function that comes while the store takes nothing runs once it does again, and its files need not change", async () => {
  const clock = new VirtualClock();
  const faults = ["the disk is full", "the disk is full"];
  const opened = () => {
    const what = faults.shift();
    if (what) throw new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", { what });
  };
  const { live, said } = fixture({ clock, opened });
  const started = live.start("start");
  await clock.advance(1_000);
  expect(live.state).toMatchObject({ type: "waiting", fault: { code: "WF_CHECKPOINT_WRITE_FAILED" } });
  await clock.advance(30_000);
  await started;
  expect(live.state).toEqual({ type: "running" });
  expect(said).toEqual(["function cannot be loaded yet"]);
});

test("a function that waits for the store gives way to its end", async () => {
  const clock = new VirtualClock();
  const opened = () => {
    throw new WatchfireError("WF_CHECKPOINT_WRITE_FAILED", { what: "the disk is full" });
  };
  const { live } = fixture({ clock, opened });
  const started = live.start("start");
  await clock.advance(1_000);
  await live.stop({ retire: false });
  await started;
  expect(clock.timers).toBe(0);
});

test("what is refused before anything ran is refused still once an older offer runs", async () => {
  const first = slow("a");
  const { live } = fixture({ first });
  const started = live.start("start");
  live.refuse([fault]);
  first.built.resolve(bundle("a"));
  await started;
  expect([live.state.type, live.refusal?.code]).toEqual(["running", "WF_MANIFEST_UNKNOWN_FIELD"]);
  await live.update(offer("a"));
  expect(live.refusal).toBeUndefined();
});

test("a changed Secret is taken up within 30 s, once the attempts that have the old value are over", async () => {
  const clock = new VirtualClock();
  const { live, loaded, swaps, secret } = fixture({ clock, first: offer("a", token) });
  await live.start("start");
  await clock.advance(60_000);
  expect(swaps).toHaveLength(0);
  secret.data = { token: base64("two") };
  await clock.advance(30_000);
  expect(loaded).toEqual(["a one"]);
  swaps[0]?.resolve();
  await clock.advance(60_000);
  expect(loaded).toEqual(["a one", "a two"]);
  await live.stop({ retire: true });
});

test("a Secret that cannot be read any more leaves the function running on the old value, and is said once", async () => {
  const clock = new VirtualClock();
  const { live, loaded, said, secret } = fixture({ clock, first: offer("a", token) });
  await live.start("start");
  said.length = 0;
  secret.fault = new ApiError({ status: 404, message: "not found", reason: "NotFound" });
  await clock.advance(120_000);
  expect(said).toEqual(["environment not read again, the old values stay"]);
  expect([loaded, live.state.type]).toEqual([["a one"], "running"]);
  await live.stop({ retire: true });
});

test("the environment of new code is followed, the old code's no more; after the end none is", async () => {
  const clock = new VirtualClock();
  const { live, loaded, swaps, secret } = fixture({ clock, first: offer("a", token) });
  await live.start("start");
  const changed = live.update(offer("b", token));
  await clock.advance(0);
  swaps[0]?.resolve();
  await changed;
  secret.data = { token: base64("two") };
  const before = secret.reads;
  await clock.advance(25_000);
  swaps[1]?.resolve();
  await clock.advance(0);
  expect([loaded, secret.reads - before]).toEqual([["a one", "b one", "b two"], 1]);
  await live.stop({ retire: false });
  const ended = secret.reads;
  await clock.advance(120_000);
  expect([secret.reads, clock.timers]).toEqual([ended, 0]);
});

test("a function whose environment refers to nothing asks the API server for nothing", async () => {
  const clock = new VirtualClock();
  const { live, secret } = fixture({ clock, first: offer("a", [{ name: "TOKEN", value: "x" }]) });
  await live.start("start");
  await clock.advance(120_000);
  expect([secret.reads, clock.timers]).toEqual([0, 0]);
});

test.each<readonly [string, Trigger["namespaces"]]>([
  ["named", { type: "names", names: ["a", "b", "c"] }],
  ["chosen by labels", { type: "labels", labelSelector: "team=yes" }],
])("a shard by namespace opens no source for another shard's namespaces, %s", async (_, namespaces) => {
  const triggers = [{ ...trigger({ name: "settings" }), namespaces }];
  const mayOwnIn = (name: string) => name !== "b";
  const shard = { number: 1, sharding: "2 by namespace", isFirst: false, owns: () => false, mayOwnIn };
  const opened: (string | undefined)[] = [];
  // The source of the namespaces lists all existing ones; every other source is recorded.
  const subscribe = ({ kind, namespace }: SourceSpec, subscriber: Subscriber) => {
    if (kind !== "Namespace") return opened.push(namespace);
    return setImmediate(() => {
      const list = subscriber.list("initial", undefined);
      for (const name of ["a", "b", "c"]) list.item(change("Added", name, 5, { namespace: "" }));
      list.end(resourceVersion("9"));
    });
  };
  const { live, begun } = fixture({
    first: { ...offer("a"), manifest: manifestOf({ triggers }), shard },
    watches: { subscribe },
  });
  await live.start("start");
  await until("both are open", 5_000, async () => opened.length >= 2);
  expect(opened).toEqual(["a", "c"]);
  expect(begun).toEqual(namespaces.type === "labels" ? ["a", "c"] : []);
});

test("a function that is restarted is unsubscribed first, and subscribed again once its account has its rights", async () => {
  const clock = new VirtualClock();
  let open = 0;
  const watches = {
    subscribe: () => {
      open++;
      return { close: async () => void open-- };
    },
  };
  const lacking: { fault: Error | undefined } = { fault: undefined };
  const grants = {
    forget: () => {},
    assert: async () => {
      if (lacking.fault) throw lacking.fault;
    },
  };
  const first = { ...offer("a"), manifest: manifestOf({ triggers: [trigger()] }) };
  const { live, loaded } = fixture({ clock, watches, grants, first });
  await live.start("start");
  expect([open, live.state.type]).toEqual([1, "running"]);
  lacking.fault = new WatchfireError("WF_DEPLOYED_FORBIDDEN", { what: "no" });
  await live.restart();
  await until("it waits", 5_000, async () => live.state.type === "waiting");
  expect([open, loaded]).toEqual([0, ["a"]]);
  lacking.fault = undefined;
  await clock.advance(10_000);
  await until("it runs", 5_000, async () => live.state.type === "running");
  expect([open, loaded]).toEqual([1, ["a", "a"]]);
  await live.stop({ retire: true });
  await live.restart();
  await clock.advance(60_000);
  expect([open, loaded]).toEqual([0, ["a", "a"]]);
});

test("a function that names more watches than there is room for waits until there is, and what runs keeps its own", async () => {
  const clock = new VirtualClock();
  const watches = { subscribe: () => ({ close: async () => {} }) };
  const names = (of: string, count: number) =>
    trigger({ namespaces: { type: "names", names: Array.from({ length: count }, (_, at) => `${of}-${at}`) } });
  const many = (hash: string, of: string) => ({ ...offer(hash), manifest: manifestOf({ triggers: [names(of, 100)] }) });
  const { live, room, said } = fixture({ clock, watches, first: many("a", "first") });
  const others = {};
  room.take(others, new Set(Array.from({ length: 750 }, (_, at) => `other/${at}`)));
  const started = live.start("start");
  await clock.advance(1_000);
  expect(live.state).toMatchObject({ type: "waiting", fault: { code: "WF_RUNTIME_WATCHES" } });
  await clock.advance(60_000);
  expect(said).toEqual(["function cannot be loaded yet"]);
  room.leave(others);
  await clock.advance(5_000);
  await started;
  expect(live.state).toEqual({ type: "running" });
  room.take(others, new Set(Array.from({ length: 700 }, (_, at) => `other/${at}`)));
  await live.update({
    ...many("b", "first"),
    manifest: manifestOf({ triggers: [names("first", 100), { ...names("second", 100), name: "second" }] }),
  });
  expect([live.state.type, live.refusal?.code, said.at(-1)]).toEqual([
    "running",
    "WF_RUNTIME_WATCHES",
    "change refused, the old version runs on",
  ]);
});
