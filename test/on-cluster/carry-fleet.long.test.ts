// Migrations of checkpoints into a fleet and out of it, with real processes and a real nats-server, while another process writes.
// The auditor compares the cluster's history with the handlers' records.
import { describe, expect, inject, test } from "vitest";
import { describe as inWords } from "../audit/audit.ts";
import { ReplicasFixture } from "../audit/replicas-fixture.ts";
import { admin, unique } from "../target/fixture.ts";
import { natsProgram } from "../tools/assets.ts";
import { NatsServer } from "../tools/nats-server.ts";
import type { Replica } from "../tools/replica.ts";
import { until } from "../tools/until.ts";

const { access } = inject("shared");
const noFault = { missed: [], unflagged: [], disordered: [], invented: [] };

async function fixture(shares: number, shards: number) {
  const nats = await NatsServer.make();
  await nats.start();
  const on = await ReplicasFixture.set(admin, access, unique("carry"), { shares, shards });
  const fleet = (slots: number) => ({ fleet: { nats: nats.url, slots } });
  const dispose = async () => {
    await on[Symbol.asyncDispose]();
    await nats.remove();
  };
  return { on, fleet, nats: nats.url, [Symbol.asyncDispose]: dispose };
}

const answer = async (replica: Replica) => (await replica.read("/readyz")).text();

const isReady = (replica: Replica) =>
  until(`${replica.name} is ready`, 60_000, async () => (await replica.read("/readyz")).ok);

/** Ends a replica as a rollout does. */
async function end(replica: Replica): Promise<void> {
  replica.signal("SIGTERM");
  expect(await replica.ended()).toBe(0);
}

/** Resolves when a replica reports that it waits for checkpoints, for this reason. */
const waitsFor = (replica: Replica, why: string) =>
  until(`${replica.name} waits for ${why}`, 30_000, async () => {
    const text = await answer(replica);
    return text.includes("WF_CHECKPOINT_AWAITED") && text.includes(why);
  });

describe.skipIf(natsProgram === undefined)("positions", () => {
  test("move from a volume into a fleet, into one of other slots and back, and changes meanwhile are delivered once", async () => {
    await using world = await fixture(6, 1);
    const { on, fleet, nats } = world;
    const volume = await on.start("sqlite");
    await on.begins(volume);
    await on.load(100);
    on.write(300);
    const far = await on.start("nats", fleet(8));
    await waitsFor(far, `they are on the volume of ${volume.options.pod}`);
    const near = await on.start("nats", { ...fleet(8), data: volume.options.data });
    await waitsFor(near, volume.name);
    await end(volume);
    on.write(100);
    await isReady(near);
    await isReady(far);
    expect(await near.log()).toContain('"checkpoints moved"');
    await on.load(100);

    // Replicas with another number of slots wait until those of the first number have ended.
    on.write(200);
    const wider = await on.start("nats", fleet(11));
    await waitsFor(wider, "replicas of a fleet of 8 slots still work");
    await end(near);
    await end(far);
    on.write(100);
    await isReady(wider);
    await on.load(100);

    on.write(200);
    const back = await on.start("sqlite", { nats });
    await waitsFor(back, "replicas of a fleet of 11 slots still work");
    await end(wider);
    on.write(100);
    await isReady(back);
    await on.load(100);
    const planned = await on.verdict();
    expect(planned, inWords(planned)).toMatchObject({ ...noFault, flagged: 0, synthetic: 0 });
    process.stdout.write(`volume, 8 slots, 11 slots, volume: ${inWords(planned)}\n`);
  }, 300_000);

  test("come out of a fleet whose replicas were killed, and of shards, with each repeat flagged", async () => {
    await using world = await fixture(1, 4);
    const { on, fleet, nats } = world;
    const alone = await on.start("nats", { nats });
    await on.begins(alone);
    await on.load(100);
    on.write(100);
    const first = await on.start("nats", fleet(8));
    await waitsFor(first, alone.name);
    await alone.kill();
    await isReady(first);
    const { fleet: seen } = await first.status();
    expect(seen?.slots.filter(({ functions }) => functions.includes("recorder"))).toHaveLength(4);
    await on.load(100);
    on.write(100);
    await first.kill();
    const carrier = await on.start("nats", fleet(5));
    await waitsFor(carrier, first.name);
    await isReady(carrier);
    await on.load(50);
    await on.allWritten();
    const verdict = await on.verdict();
    expect(verdict, inWords(verdict)).toMatchObject(noFault);

    // Without shards there is no checkpoint yet, so changes while no replica works are found by a list.
    await end(carrier);
    const out = await on.start("kubernetes", { nats });
    await isReady(out);
    await on.load(50);
    const gathered = await on.verdict();
    expect(gathered, inWords(gathered)).toMatchObject(noFault);
    expect(gathered.flagged).toBe(verdict.flagged);
    process.stdout.write(`nats, 8 slots, kill, 5 slots, Secrets: ${inWords(gathered)}\n`);
  }, 300_000);

  test("of a function are spread over another number of shards once all replicas have gone, and not before", async () => {
    await using world = await fixture(1, 4);
    const { on, fleet } = world;
    const first = await on.start("nats", fleet(6));
    await isReady(first);
    await on.load(100);
    const functions = await on.inShards(2);
    const second = await on.start("nats", { ...fleet(6), functions });
    await isReady(second);
    const shardsSeen = async (replica: Replica) =>
      (await replica.status()).fleet?.slots.filter(({ functions: names }) => names.includes("recorder")).length;
    expect([await shardsSeen(first), await shardsSeen(second)]).toEqual([4, 4]);
    expect(JSON.stringify((await second.status()).functions)).toContain("WF_LEASE_SHARDS");
    await on.load(50);
    // Changes while no replica works are delivered as after a gap.
    expect(await on.verdict()).toMatchObject(noFault);
    await end(first);
    await end(second);
    const third = await on.start("nats", { ...fleet(6), functions });
    const fourth = await on.start("nats", { ...fleet(6), functions });
    await isReady(third);
    await isReady(fourth);
    expect([await shardsSeen(third), await shardsSeen(fourth)]).toEqual([2, 2]);
    await on.load(50);
    const verdict = await on.verdict();
    expect(verdict, inWords(verdict)).toMatchObject({ ...noFault, flagged: 0, synthetic: 0 });
    process.stdout.write(`4 shards, 2 shards: ${inWords(verdict)}\n`);
  }, 300_000);

  test("stay where they were carried though the Lease that says so is deleted, as a replica comes and as all start anew", async () => {
    await using world = await fixture(4, 1);
    const { on, fleet } = world;
    const first = await on.start("nats", fleet(8));
    await isReady(first);
    await on.load(50);
    await end(first);
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${on.namespace}/leases`;
    const [second, third] = [await on.start("nats", fleet(5)), await on.start("nats", fleet(5))];
    await isReady(second);
    await isReady(third);
    const setNow = async () =>
      (await admin.get(`${leases}/watchfire`)).metadata.annotations?.["watchfire.dev/nats-set"];
    const set = await setNow();
    expect(set).toMatch(/-\d+$/);
    on.write(300);
    await admin.delete(`${leases}/watchfire`);
    const fourth = await on.start("nats", fleet(5));
    await isReady(fourth);
    await on.load(50);
    expect(await setNow()).toBe(set);
    for (const each of [second, third, fourth]) await end(each);
    const { items } = await admin.get(leases);
    for (const { metadata } of items as { metadata: { name: string } }[])
      await admin.delete(`${leases}/${metadata.name}`);
    on.write(100);
    const fifth = await on.start("nats", fleet(5));
    await isReady(fifth);
    await on.load(50);
    expect(await setNow()).toBe(set);
    const verdict = await on.verdict();
    expect(verdict, inWords(verdict)).toMatchObject({ ...noFault, flagged: 0, synthetic: 0 });
  }, 300_000);
});
