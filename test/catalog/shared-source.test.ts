// The sets of a namespace that shares the runtime.
import { expect, test } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { bundleOf } from "../../runtime/bundle/script-bundle.ts";
import { ClusterSource, type SetLimits } from "../../runtime/catalog/cluster-source.ts";
import { indexConfigMap, indexData } from "../../runtime/catalog/deployed-index.ts";
import { packFunction } from "../../runtime/catalog/packed-function.ts";
import { mayBeUnread, SharedSource } from "../../runtime/catalog/shared-source.ts";
import type { Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import type { Informers } from "../../runtime/informer/informers.ts";
import { change } from "../engine/fixture.ts";
import { VirtualClock } from "../virtual-clock.ts";

const namespace = "team-a";
const account = "watchfire";
const limits: SetLimits = {
  functions: 3,
  memoryBytes: 256 * 2 ** 20,
  codeBytes: 4 * 2 ** 20,
  groups: 2,
  heldBytes: 2 ** 20,
  restMs: 1_000,
};

interface Made {
  readonly name: string;
  readonly memory?: string;
  readonly group?: string;
  /** Characters of its code. */
  readonly length?: number;
  /** Spaces after its manifest. */
  readonly padding?: number;
}

const sourceMap = JSON.stringify({ version: 3, sources: [], mappings: "" });

function pack({ name, memory = "64Mi", group, length = 1, padding = 0 }: Made) {
  const manifest = `${JSON.stringify({
    apiVersion: "watchfire.dev/v1alpha1",
    kind: "Function",
    metadata: { name },
    spec: {
      handler: "./handler.ts",
      resources: { memory },
      triggers: [{ watch: { apiVersion: "v1", kind: "ConfigMap" } }],
      ...(group !== undefined && { trustGroup: group }),
    },
  })}${" ".repeat(padding)}`;
  return packFunction(name, manifest, bundleOf(" ".repeat(length), sourceMap), { account, namespace, root: "/" });
}

const entryOf = ({ name, sha256, configMap }: ReturnType<typeof pack>) => {
  return { name, sha256, configMap: configMap.metadata.name };
};

/** A source whose cluster a test writes: `deploy` replaces a set. */
async function fixture(clock = new VirtualClock()) {
  const said: string[] = [];
  let subscriber: Subscriber | undefined;
  const watches = {
    subscribe: (_: unknown, by: Subscriber) => {
      subscriber = by;
      const list = by.list("initial", undefined);
      list.end(resourceVersion("1"));
      return { close: async () => {} };
    },
    status: () => [],
  } as unknown as Informers;
  let changes = 0;
  const source = new ClusterSource({
    watches,
    namespace,
    account,
    limits,
    clock,
    log: { info: () => {}, error: ({ error }: { error: string }) => said.push(error) } as never,
    changed: () => changes++,
  });
  const shared = new SharedSource(namespace, source);
  const { signal } = new AbortController();
  await shared.read(signal);
  let version = 1;
  const write = (object: { metadata: { name: string } }) => {
    const { name } = object.metadata;
    const body = Buffer.from(JSON.stringify(object));
    subscriber?.change({ ...change("Modified", name, ++version, { namespace }), body });
  };
  const deploy = (set: string, ...functions: readonly Made[]) => {
    const packed = functions.map(pack);
    for (const { configMap } of packed)
      write({ ...configMap, metadata: { ...configMap.metadata, labels: { "watchfire.dev/set": set } } } as never);
    write(indexConfigMap({ account, namespace, set }, indexData(packed.map(entryOf))));
  };
  const names = async () => (await shared.read(signal)).functions.map(({ manifest }) => manifest.name).sort();
  /** Names functions whose ConfigMaps are there. */
  const restore = (set: string, ...functions: readonly Made[]) =>
    write(indexConfigMap({ account, namespace, set }, indexData(functions.map(pack).map(entryOf))));
  const refused = async () =>
    (await shared.read(signal)).rejected.flatMap(({ name, faults: [fault] }) =>
      fault?.code === "WF_DEPLOYED_LIMIT" ? (name ?? "") : [],
    );
  /** Writes the index of a set that names no functions, or deletes it. */
  const empty = (set: string, type: "Modified" | "Deleted" = "Modified") => {
    const object = indexConfigMap({ account, namespace, set }, {});
    const body = Buffer.from(JSON.stringify(object));
    subscriber?.change({ ...change(type, object.metadata.name, ++version, { namespace }), body });
  };
  return { clock, deploy, restore, empty, names, refused, said, shared, signal, changes: () => changes };
}

test("a function has its namespace in its name, its group, its file and its origin, and shares nothing with another's", async () => {
  const { clock, deploy, shared, signal } = await fixture();
  deploy("main", { name: "greet", group: "g" }, { name: "wave" });
  await clock.advance(1_000);
  const { functions } = await shared.read(signal);
  expect(functions.map(({ manifest: { name, trustGroup } }) => [name, trustGroup])).toEqual([
    ["greet.team-a", "team-a/g"],
    ["wave.team-a", "team-a/"],
  ]);
  expect(functions[0]?.origin).toMatchObject({ namespace: "team-a", set: "main" });
  expect(functions[0]?.manifest.file).toMatch(/^team-a\//);
});

test.each<[string, readonly Made[], string]>([
  [
    "functions",
    [{ name: "a" }, { name: "b" }, { name: "c" }],
    "the set second has 3 functions, and namespace team-a has room for 2",
  ],
  [
    "memory",
    [{ name: "a", memory: "256Mi" }],
    "more `resources.memory` together, and namespace team-a has room for 192 MiB",
  ],
  [
    "groups",
    [
      { name: "a", group: "one" },
      { name: "b", group: "two" },
    ],
    "the set second has more trust groups, and namespace team-a has room for 2 groups",
  ],
  ["code", [{ name: "a", length: 5 * 2 ** 20 }], "the set second has more code"],
])("a set for which there is not enough room (%s) changes nothing, and says so", async (_, beyond, words) => {
  const { clock, deploy, names, said, shared } = await fixture();
  deploy("first", { name: "greet" });
  deploy("second", { name: "wave" });
  await clock.advance(1_000);
  deploy("second", ...beyond);
  await clock.advance(1_000);
  expect(await names()).toEqual(["greet.team-a", "wave.team-a"]);
  expect(said).toEqual([expect.stringContaining(words)]);
  expect(shared.trouble?.message).toContain("of the sets in namespace team-a: ");
  deploy("second", { name: "a" });
  await clock.advance(1_000);
  expect(await names()).toEqual(["a.team-a", "greet.team-a"]);
  expect(shared.trouble).toBeUndefined();
});

test("a set that waits for room is used once another set has less", async () => {
  const { clock, deploy, names, refused } = await fixture();
  deploy("second", { name: "c" });
  deploy("first", { name: "a" }, { name: "b" });
  await clock.advance(1_000);
  deploy("second", { name: "c" }, { name: "d" });
  await clock.advance(1_000);
  expect([await names(), await refused()]).toEqual([
    ["a.team-a", "b.team-a"],
    ["c.team-a", "d.team-a"],
  ]);
  deploy("first", { name: "a" });
  await clock.advance(1_000);
  expect(await names()).toEqual(["a.team-a", "c.team-a", "d.team-a"]);
});

test("however often a team deploys, it is looked at once a second", async () => {
  const { clock, deploy, changes } = await fixture();
  const before = changes();
  for (let at = 0; at < 50; at++) deploy("main", { name: `greet-${at}` });
  expect(changes()).toBe(before);
  await clock.advance(1_000);
  expect(changes()).toBe(before + 1);
});

test("what takes long to look at is looked at less often", async () => {
  // Each look takes half a second.
  class SlowClock extends VirtualClock {
    private asked = 0;
    override monotonic = () => this.asked++ * 500;
  }
  const { clock, deploy, names } = await fixture(new SlowClock());
  deploy("main", { name: "greet" });
  await clock.advance(1_000);
  deploy("main", { name: "wave" });
  await clock.advance(9_999);
  expect(await names()).toEqual(["greet.team-a"]);
  await clock.advance(1);
  expect(await names()).toEqual(["wave.team-a"]);
});

test("of thousands of sets a hundred are looked at, and others once some of them are gone", async () => {
  const { clock, deploy, empty, names, shared } = await fixture();
  deploy("first", { name: "greet" });
  await clock.advance(1_000);
  for (let at = 0; at < 4_000; at++) empty(`set-${at}`);
  deploy("last", { name: "wave" });
  await clock.advance(1_000);
  expect(await names()).toEqual(["greet.team-a"]);
  expect(shared.trouble?.message).toContain("is one more than the 100 sets that namespace team-a may have");
  for (let at = 0; at < 4_000; at++) empty(`set-${at}`, "Deleted");
  for (let looks = 0; looks < 2; looks++) {
    deploy("last", { name: "wave" });
    await clock.advance(1_000);
  }
  expect(await names()).toEqual(["greet.team-a", "wave.team-a"]);
  expect(shared.trouble).toBeUndefined();
});

test("a manifest that takes long to parse is refused unread", async () => {
  const { clock, deploy, names, refused } = await fixture();
  deploy("main", { name: "greet" });
  await clock.advance(1_000);
  deploy("main", { name: "greet", padding: 64 * 1024 });
  await clock.advance(1_000);
  expect([await names(), await refused()]).toEqual([[], ["greet.team-a"]]);
});

test("a set goes back to functions whose ConfigMaps are still there", async () => {
  const { clock, deploy, restore, names } = await fixture();
  deploy("main", { name: "greet" });
  await clock.advance(1_000);
  deploy("main", { name: "wave" });
  await clock.advance(1_000);
  expect(await names()).toEqual(["wave.team-a"]);
  restore("main", { name: "greet" });
  await clock.advance(1_000);
  expect(await names()).toEqual(["greet.team-a"]);
});

test("a namespace that cannot be read keeps its own functions from counting as removed, and no other's", async () => {
  const unread = { functions: [], rejected: [], faults: [], complete: false };
  const shared = new SharedSource(namespace, { read: async () => unread, trouble: undefined });
  const set = await shared.read(new AbortController().signal);
  expect(set.complete).toBe(true);
  expect(["greet.team-a", "greet.team-b", "greet"].map((name) => mayBeUnread(set, name))).toEqual([true, false, false]);
});
