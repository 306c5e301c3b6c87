import { startCluster } from "@watchfire/cluster";
import { expect, onTestFinished, test } from "vitest";
import { ApiError } from "../../runtime/kube/api-error.ts";
import type { KubeRequest } from "../../runtime/kube/transport.ts";
import type { Installation } from "../tools/installation.ts";
import { cluster, createTeam, install } from "./cluster.ts";

test("1,000 unchanged objects: a restart within the history runs no handler and sends no LIST; after it, one LIST per source", async () => {
  const team = await createTeam();
  const runtime = await install();
  const names = Array.from({ length: 1000 }, (_, index) => `item-${index}`);
  for (let at = 0; at < names.length; at += 50)
    await Promise.all(names.slice(at, at + 50).map((name) => team.make(name)));
  await runtime.define("follower", { watch: team.watch({ initialEvents: "Skip" }) });
  const permissions = [{ apiGroups: [""], resources: ["secrets"], verbs: ["list"], namespaces: [team.name] }];
  await runtime.define("neighbour", {
    watch: team.watch({ initialEvents: "Skip", kind: "Secret" }),
    spec: { permissions },
  });
  await runtime.start();
  await runtime.quiet();
  const secrets = `/api/v1/namespaces/${team.name}/secrets`;
  const lists = () => [runtime.transport.lists(team.path), runtime.transport.lists(secrets)];
  expect(lists()).toEqual([1, 1]);

  await runtime.kill();
  await runtime.start();
  await team.make("news");
  await runtime.hears("follower", 1);
  expect(runtime.told("follower")).toEqual(["Added news=1"]);
  expect(lists()).toEqual([1, 1]);

  await runtime.drain();
  await team.set("news", 2);
  await team.set("news", 3);
  cluster.compact();
  await runtime.start();
  await runtime.hears("follower", 2);
  await team.make("more-news");
  await runtime.hears("follower", 3);
  expect(runtime.told("follower").slice(1)).toEqual(["Modified news=3 synthetic (relist)", "Added more-news=1"]);
  expect(runtime.told("neighbour")).toEqual([]);
  expect(lists()).toEqual([2, 2]);
});

test("what happened while it was down is told change by change where history has it, and not flagged", async () => {
  const team = await createTeam();
  const runtime = await install();
  for (const name of ["kept", "changed", "gone", "renewed"]) await team.make(name);
  await runtime.define("follower", { watch: team.watch(), spec: { delivery: { concurrency: 1 } } });
  await runtime.start();
  await runtime.hears("follower", 4);
  await runtime.quiet();
  await runtime.kill();
  await team.set("changed", 2);
  await team.set("changed", 3);
  await team.remove("gone");
  await team.remove("renewed");
  await team.make("renewed", 9);
  await team.make("new");
  await runtime.start();
  await runtime.hears("follower", 10);
  expect(byObject(runtime.told("follower").slice(4))).toEqual({
    changed: ["Modified changed=2", "Modified changed=3"],
    gone: ["Deleted gone=1"],
    renewed: ["Deleted renewed=1", "Added renewed=9"],
    new: ["Added new=1"],
  });
});

test("when history is gone, each net change is delivered once, flagged, deletions first and with the last known object", async () => {
  const team = await createTeam();
  const runtime = await install();
  for (const name of ["kept", "changed", "gone", "renewed"]) await team.make(name);
  await runtime.define("follower", { watch: team.watch(), spec: { delivery: { concurrency: 1 } } });
  await runtime.start();
  await runtime.hears("follower", 4);
  await runtime.quiet();
  await runtime.kill();
  await team.set("changed", 2);
  await team.set("changed", 3);
  await team.remove("gone");
  await team.remove("renewed");
  await team.make("renewed", 9);
  await team.make("new");
  cluster.compact();
  await runtime.start();
  await runtime.hears("follower", 9);
  await runtime.quiet();
  const told = runtime.told("follower").slice(4);
  expect(told.slice(0, 2).every((line) => line.startsWith("Deleted"))).toBe(true);
  expect(byObject(told)).toEqual({
    gone: ["Deleted gone=1 synthetic finalStateUnknown (relist)"],
    renewed: ["Deleted renewed=1 synthetic finalStateUnknown (relist)", "Added renewed=9 synthetic (relist)"],
    changed: ["Modified changed=3 synthetic (relist)"],
    new: ["Added new=1 synthetic (relist)"],
  });
  await runtime.kill();
  await runtime.start();
  expect(runtime.told("follower")).toHaveLength(9);
});

test("an event that was in a handler when the process died is delivered again, flagged; a finished one is not", async () => {
  const team = await createTeam();
  const runtime = await install();
  const work = `if (event.object.metadata.name === "slow" && !event.redelivered) await new Promise(() => {});`;
  await runtime.define("follower", { watch: team.watch(), work });
  await runtime.start();
  await team.make("slow");
  await team.make("quick");
  await runtime.hears("follower", "Added quick=1");
  await runtime.sees("only the slow one runs", async () => {
    const status = await runtime.function("follower");
    return status?.inFlight === 1 && status.queued === 0;
  });
  await runtime.saved();
  await runtime.kill();
  await runtime.start();
  await runtime.hears("follower", "Added slow=1 redelivered #2");
  await runtime.quiet();
  expect(runtime.told("follower").filter((line) => line.includes("quick"))).toHaveLength(1);
  expect(await runtime.metric("watchfire_redelivered_total")).toBe(1);
});

test("with initialEvents Skip objects that existed first are not delivered, and every later change is, deletions included", async () => {
  const team = await createTeam();
  const runtime = await install();
  for (const name of ["first", "second"]) await team.make(name);
  await runtime.define("follower", { watch: team.watch({ initialEvents: "Skip" }) });
  await runtime.start();
  await runtime.kill();
  await team.remove("first");
  await runtime.start();
  await team.set("second", 2);
  await runtime.hears("follower", 2);
  expect(runtime.told("follower").toSorted()).toEqual(["Deleted first=1", "Modified second=2"]);
});

test("a selector that changed tells of what came and went under it, and replays nothing else", async () => {
  const team = await createTeam();
  const runtime = await install();
  const selecting = (...colours: string[]) =>
    team.watch({ labelSelector: { matchExpressions: [{ key: "colour", operator: "In", values: colours }] } });
  for (const colour of ["red", "green", "blue"]) await team.make(colour, 1, { colour });
  await runtime.define("follower", { watch: selecting("red", "green") });
  await runtime.start();
  await runtime.hears("follower", 2);
  await runtime.quiet();
  await runtime.define("follower", { watch: selecting("green", "blue") });
  await runtime.reload();
  await runtime.hears("follower", 4);
  await runtime.quiet();
  expect(runtime.told("follower").slice(2).toSorted()).toEqual([
    "Added blue=1 synthetic (selected)",
    "Deleted red=1 synthetic finalStateUnknown (unselected)",
  ]);
});

test("code that changes takes over without a list, and each event is told to one version of it", async () => {
  const team = await createTeam();
  const runtime = await install();
  const version = (number: number) =>
    `ctx.log.info("version", { number: ${number}, name: event.object.metadata.name });`;
  await runtime.define("follower", { watch: team.watch(), work: version(1) });
  await runtime.start();
  await team.make("a");
  await runtime.hears("follower", 1);
  await runtime.define("follower", { watch: team.watch(), work: version(2) });
  await runtime.reload();
  await team.make("b");
  await runtime.hears("follower", 2);
  await runtime.quiet();
  expect(runtime.lines.filter(({ msg }) => msg === "version").map(({ fields }) => fields)).toEqual([
    { number: 1, name: "a" },
    { number: 2, name: "b" },
  ]);
  expect(runtime.transport.lists(team.path)).toBe(1);
});

test("another cluster's data folder is refused, not read as if everything had been deleted", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("follower", { watch: team.watch() });
  await runtime.start();
  await runtime.drain();
  const other = await startCluster();
  onTestFinished(() => other.close());
  await runtime.moveTo({ server: other.url, ca: other.caCertificate, token: other.adminToken });
  await expect(runtime.open()).rejects.toThrow(/WF_CHECKPOINT_OTHER_CLUSTER/);
});

/** A transport that may not read kube-system for so many requests. */
function withhold(runtime: Installation, times: number): void {
  const { transport } = runtime;
  const json = transport.json.bind(transport);
  transport.json = <T>(request: KubeRequest, limit?: number): Promise<T> => {
    if (!request.path.endsWith("/kube-system") || times-- <= 0) return json(request, limit);
    return Promise.reject(new ApiError({ status: 403, reason: "Forbidden", message: "kube-system is forbidden" }));
  };
}

test("a cluster whose identity cannot be read is told of, and what it would be needed for", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("follower", { watch: team.watch() });
  withhold(runtime, 3);
  await runtime.start();
  expect(runtime.lines.filter(({ msg }) => msg === "cluster's identity unknown")).toMatchObject([
    { level: "warn", error: "kube-system is forbidden", hint: expect.stringContaining("kube-system") },
  ]);
});

test("an API server that refuses at its own start does not cost the positions their cluster", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("follower", { watch: team.watch() });
  withhold(runtime, 2);
  await runtime.start();
  expect(runtime.lines.filter(({ msg }) => msg === "cluster's identity unknown")).toEqual([]);
  await runtime.drain();
  const other = await startCluster();
  onTestFinished(() => other.close());
  await runtime.moveTo({ server: other.url, ca: other.caCertificate, token: other.adminToken });
  await expect(runtime.open()).rejects.toThrow(/WF_CHECKPOINT_OTHER_CLUSTER/);
});

/** Groups events by object, because the order is promised only within an object. */
function byObject(told: readonly string[]): Partial<Record<string, string[]>> {
  return Object.groupBy(told, (line) => line.split(/[ =]/)[1] ?? "");
}
