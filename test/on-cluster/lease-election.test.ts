import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import { SqliteJournal } from "../../runtime/journal/sqlite/journal.ts";
import { ApiError } from "../../runtime/kube/api-error.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Elector, leaseMs } from "../../runtime/lease/elector.ts";
import { leaseApi } from "../../runtime/lease/lease-api.ts";
import { admin, createNamespace, unique } from "../target/fixture.ts";
import { Installation } from "../tools/installation.ts";
import { until } from "../tools/until.ts";

const transport = connectDirect({ server: admin.access.url, ...admin.access });
afterAll(() => transport.close());
let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace();
});

const silent = { info: () => {}, warn: () => {} };

/** A candidate for a Lease that only this test uses. */
class Candidate extends Elector {
  private readonly stop = new AbortController();

  constructor(lease: string, identity: string) {
    const api = leaseApi(transport, namespace, lease);
    super({ api, identity, clock: systemClock, random: Math.random, log: silent });
  }

  run(): this {
    this.campaign(this.stop.signal).catch(() => undefined);
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop.abort();
    await this.release();
  }
}

const path = (lease: string) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${lease}`;

describe("an election on a Lease", () => {
  test("has one winner, and the next one when that lets go, under a higher number", async () => {
    const lease = unique("lease");
    await using a = new Candidate(lease, "a").run();
    await using b = new Candidate(lease, "b").run();
    await until("one holds it", 10_000, async () => a.holds || b.holds);
    const [winner, other] = a.holds ? [a, b] : [b, a];
    expect([winner.holds, other.holds]).toEqual([true, false]);
    expect((await admin.get(path(lease))).spec).toMatchObject({
      holderIdentity: winner === a ? "a" : "b",
      leaseDurationSeconds: leaseMs / 1000,
      leaseTransitions: 1,
    });
    const fence = winner.fence;
    await winner.release();
    await until("the other holds it", 10_000, async () => other.holds);
    expect(other.fence).toEqual({ lease: fence?.lease, number: 2, acquired: expect.any(String) });
  });

  test("keeps what others wrote on the Lease, and its own annotations", async () => {
    const lease = unique("lease");
    await using a = new Candidate(lease, "a").run();
    await until("it is held", 10_000, async () => a.holds);
    await admin.patch(path(lease), { metadata: { labels: { team: "x" }, annotations: { note: "mine" } } });
    await a.annotate({ "watchfire.dev/positions": "kubernetes" });
    const { metadata } = await admin.get(path(lease));
    expect([metadata.labels, metadata.annotations]).toEqual([
      { team: "x" },
      { note: "mine", "watchfire.dev/positions": "kubernetes" },
    ]);
    expect(a.holds).toBe(true);
  });

  test("shows who holds it in /status where that is no replica, and the log says so once", async () => {
    const account = unique("lease");
    const { url, ca, token } = admin.access;
    const standby = { account, namespace, election: { identity: "wf-0", pod: "wf-0" } };
    await using runtime = await Installation.on({ server: url, ca, token: token ?? "" }, undefined, standby);
    await runtime.define("greet", { watch: { apiVersion: "v1", kind: "ConfigMap" } });
    const leases = path(account).replace(`/${account}`, "");
    await admin.post(leases, {
      metadata: { name: account },
      spec: { holderIdentity: "a stranger", leaseDurationSeconds: 86_400 },
    });
    await runtime.open();
    const lease = async () => (await runtime.status()).lease;
    await runtime.sees("it says who", async () => (await lease())?.holder === "a stranger");
    const obstacle = (await lease())?.obstacle;
    expect(obstacle).toContain("for 86400 s at a time");
    await runtime.sees("so does its function", async () => (await runtime.function("greet"))?.message === obstacle);
    expect((await fetch(`${runtime.url}/readyz`)).status).toBe(200);
    await admin.patch(path(account), { metadata: { annotations: { seen: "again" } } });
    const told = () => runtime.lines.filter(({ msg }) => msg === "lease held by another program");
    expect(told()).toMatchObject([{ level: "warn", holder: "a stranger" }]);

    await admin.patch(path(account), { spec: { holderIdentity: null } });
    await runtime.sees("it takes it", async () => (await runtime.status()).role === "active");
    expect(told()).toHaveLength(1);
  });

  test("that is not allowed is told in /status, with what to do, and the replica is not ready", async () => {
    const account = unique("lease");
    const { url, ca, token } = admin.access;
    const barred = { account, namespace, election: { identity: "wf-0", pod: "wf-0" } };
    await using runtime = await Installation.on({ server: url, ca, token: token ?? "" }, undefined, barred);
    const request = runtime.transport.json.bind(runtime.transport);
    let granted = false;
    runtime.transport.json = (call, limit) => {
      if (granted || !call.path.includes("/leases")) return request(call, limit);
      return Promise.reject(new ApiError({ status: 403, message: 'leases "x" is forbidden: User "y" cannot get it' }));
    };
    await runtime.open();
    const obstacle = async () => (await runtime.status()).lease?.obstacle ?? "";
    await runtime.sees("it says why", async () => /WF_KUBE_FORBIDDEN.*cannot get it.*doctor/.test(await obstacle()));
    expect((await fetch(`${runtime.url}/readyz`)).status).toBe(503);
    granted = true;
    await runtime.sees("it takes it", async () => (await runtime.status()).role === "active");
  });

  test("that is won while the volume is another's says so in /status until it is free", async () => {
    const account = unique("lease");
    const { url, ca, token } = admin.access;
    const early = { account, namespace, election: { identity: "wf-0", pod: "wf-0" } };
    await using runtime = await Installation.on({ server: url, ca, token: token ?? "" }, undefined, early);
    const holder = new Checkpoint(new SqliteJournal({ folder: runtime.data }));
    await runtime.open();
    const lease = async () => (await runtime.status()).lease;
    await runtime.sees("it says why", async () => (await lease())?.obstacle?.includes("WF_CHECKPOINT_LOCKED") ?? false);
    expect((await lease())?.holder).toBe("wf-0");
    expect((await fetch(`${runtime.url}/readyz`)).status).toBe(503);
    await holder.close(true);
    await runtime.sees("it goes on", async () => (await runtime.status()).role === "active");
    expect(await lease()).toBeUndefined();
  });

  test("is lost at once when the Lease is taken away", async () => {
    const lease = unique("lease");
    await using a = new Candidate(lease, "a").run();
    await until("it is held", 10_000, async () => a.holds);
    await admin.delete(path(lease));
    expect((await a.lost).code).toBe("WF_LEASE_LOST");
    expect(a.holds).toBe(false);
  });
});
