// A runtime during faults of the cluster itself: a restart of the API server, a loss of history, and a restore of its data.
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Client } from "../../target/client.ts";
import { describeHistory, startOwn } from "../../target/fixture.ts";
import type { OwnTarget } from "../../target/target.ts";
import { Installation } from "../../tools/installation.ts";

const path = "/api/v1/namespaces/gap/configmaps";
const watch = {
  apiVersion: "v1",
  kind: "ConfigMap",
  namespaceSelector: { matchNames: ["gap"] },
  fieldSelector: "metadata.name!=kube-root-ca.crt",
};

describeHistory("a runtime whose cluster is disturbed", () => {
  let target: OwnTarget & { readonly admin: Client };
  let runtime: Installation;
  /** Number of deliveries before the test. */
  let before = 0;
  const news = () => runtime.told("follower").slice(before).toSorted();
  const hears = (count: number) => runtime.hears("follower", before + count);
  const make = (name: string) => target.admin.post(path, { metadata: { name }, data: { v: "1" } });
  const set = (name: string, v: number) => target.admin.patch(`${path}/${name}`, { data: { v: String(v) } });
  const remove = (name: string) => target.admin.delete(`${path}/${name}`);
  /** Advances the cluster's resourceVersion past the last one that a quiet source received. */
  const elsewhere = () =>
    target.admin.post("/api/v1/namespaces/default/secrets", { metadata: { generateName: "other-" } });

  beforeAll(async () => {
    target = await startOwn();
    const { url, ca, token } = target.access;
    runtime = await Installation.on({ server: url, ca, token });
    await target.admin.post("/api/v1/namespaces", { metadata: { name: "gap" } });
    await make("kept");
    await runtime.define("follower", { watch });
    await runtime.start();
    await runtime.hears("follower", 1);
  });
  beforeEach(async () => {
    await runtime.quiet();
    before = runtime.told("follower").length;
  });
  afterAll(() => runtime?.[Symbol.asyncDispose]());

  test("its API server restarted: what is unchanged is silent, and the next change comes as ever", async () => {
    await target.restart();
    await make("after-restart");
    await hears(1);
    expect(news()).toEqual(["Added after-restart=1"]);
  });

  test("etcd compacted while it runs: at most one list, silent for what is known, and nothing lost", async () => {
    await elsewhere();
    const lists = runtime.transport.lists(path);
    await target.compact();
    await set("kept", 2);
    await hears(1);
    await runtime.quiet();
    expect(news()).toEqual([expect.stringMatching(/^Modified kept=2/)]);
    expect(runtime.transport.lists(path)).toBeLessThanOrEqual(lists + 1);
  });

  test("etcd compacted while it was down: one list, and each net change once, flagged", async () => {
    await make("gone");
    await make("renewed");
    await hears(2);
    await runtime.quiet();
    before += 2;
    const lists = runtime.transport.lists(path);
    await runtime.kill();
    await set("kept", 3);
    await set("kept", 4);
    await remove("gone");
    await remove("renewed");
    await make("renewed");
    await make("new");
    await target.compact();
    await runtime.start();
    await hears(5);
    await runtime.quiet();
    expect(news()).toEqual([
      "Added new=1 synthetic (relist)",
      "Added renewed=1 synthetic (relist)",
      "Deleted gone=1 synthetic finalStateUnknown (relist)",
      "Deleted renewed=1 synthetic finalStateUnknown (relist)",
      "Modified kept=4 synthetic (relist)",
    ]);
    expect(runtime.transport.lists(path)).toBe(lists + 1);
  });

  /** Changes after the backup: a change, a creation and a deletion. Ends with the source well past the backup. */
  async function afterBackUp(): Promise<void> {
    await make("deleted-since");
    await hears(1);
    await target.backUp();
    await set("kept", 7);
    await make("made-since");
    await remove("deleted-since");
    // A starting API server writes as well, so the earlier resourceVersions must be out of its reach.
    for (let times = 0; times < 200; times++) await elsewhere();
    await set("made-since", 2);
    await set("kept", 8);
    await hears(6);
    await runtime.quiet();
    before += 6;
  }
  const rewound = (last: string) => [
    "Added deleted-since=1 synthetic (rv-rewind)",
    expect.stringMatching(`^Deleted made-since=${last} synthetic finalStateUnknown \\(rv-rewind\\)$`),
    "Modified kept=4 synthetic (rv-rewind)",
  ];

  test("etcd put back from an earlier copy while it was down: the differences come within 30 s of the start", async () => {
    await afterBackUp();
    await runtime.kill();
    await target.rewind();
    const began = performance.now();
    await runtime.start();
    await hears(3);
    expect(performance.now() - began).toBeLessThan(30_000);
    await runtime.quiet();
    // The last body is stored only from time to time, so after a kill it may be an older one.
    expect(news()).toEqual(rewound("[12]"));
    await remove("deleted-since");
    await hears(4);
    expect(await runtime.metric("watchfire_watch_reconnects_total", { cause: "rewind" })).toBeGreaterThan(0);
  });

  test("etcd put back from an earlier copy while it runs: the differences come within 30 s of the API's return", async () => {
    await afterBackUp();
    await target.rewind();
    const began = performance.now();
    await hears(3);
    expect(performance.now() - began).toBeLessThan(30_000);
    await runtime.quiet();
    expect(news()).toEqual(rewound("2"));
    expect(await runtime.metric("watchfire_watch_reconnects_total", { cause: "rewind" })).toBeGreaterThan(1);
    await set("kept", 9);
    await hears(4);
    expect(runtime.told("follower").at(-1)).toBe("Modified kept=9");
  });
});
