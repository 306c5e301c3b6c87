// Replicas whose NATS has one unreadable slot, in separate processes on a real nats-server.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, inject, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { Nats } from "../../runtime/journal/nats/connection.ts";
import { JetstreamLog } from "../../runtime/journal/nats/log.ts";
import { slotOf } from "../../runtime/slots/rendezvous.ts";
import { ReplicasFixture } from "../audit/replicas-fixture.ts";
import { admin, unique } from "../target/fixture.ts";
import { natsProgram } from "../tools/assets.ts";
import { NatsServer } from "../tools/nats-server.ts";
import type { Replica } from "../tools/replica.ts";
import { until } from "../tools/until.ts";

const { access } = inject("shared");
const execute = promisify(execFile);
const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");

/** A fleet with its NATS and its cluster; `shares`: number of functions. */
async function fixture(slots: number, shares: number) {
  const server = await NatsServer.make();
  await server.start();
  const on = await ReplicasFixture.set(admin, access, unique("damaged"), { shares });
  const name = `${on.namespace}_watchfire`;
  const nats = await Nats.connect({ servers: [server.url], name, log: { warn: () => {}, info: () => {} } });
  const start = () => on.start("nats", { fleet: { nats: server.url, slots } });
  const lastOf = (slot: number) => new JetstreamLog(nats, systemClock, String(slot)).read();
  const damage = async (slot: number) => {
    const last = await lastOf(slot);
    await nats.jsm.streams.deleteMessage(nats.logStream, last?.note.after ?? 0);
  };
  /** The repair that the guide and the error name. */
  const repair = (slot: number) => nats.jsm.streams.purge(nats.logStream, { filter: `${nats.logSubject}.${slot}` });
  const dispose = async () => {
    await on[Symbol.asyncDispose]();
    await nats.close();
    await server.remove();
  };
  return { on, server, nats, start, lastOf, damage, repair, [Symbol.asyncDispose]: dispose };
}

/** The slots by their state, as a replica reports them. */
async function states(replica: Replica): Promise<Partial<Record<string, number[]>>> {
  const all = (await replica.status()).fleet?.slots ?? [];
  const grouped = Object.groupBy(all, ({ state }) => state);
  return Object.fromEntries(Object.entries(grouped).map(([state, of]) => [state, of?.map(({ slot }) => slot)]));
}

const readiness = async (replica: Replica) => {
  const answer = await replica.read("/readyz");
  return `${answer.status} ${await answer.text()}`;
};

const lines = async (replica: Replica, words: string) =>
  (await replica.log()).split("\n").filter((line) => line.includes(words));

describe.skipIf(natsProgram === undefined)("a slot whose positions cannot be read", () => {
  test("stands still alone, with whichever replica takes it, says so everywhere, and runs once it is repaired", async () => {
    const slots = 6;
    await using world = await fixture(slots, 8);
    const { on, nats, start, lastOf, damage, repair } = world;
    const slot = slotOf("recorder-0", slots);
    const former = await start();
    await until("it has all slots", 60_000, async () => (await states(former)).running?.length === slots);
    // Objects that are created and deleted before the first list are not delivered.
    await until("it is ready", 60_000, async () => (await readiness(former)) === "200 ok\n");
    await on.load(100);
    await former.kill();
    await damage(slot);

    const first = await start();
    const second = await start();
    const both = [first, second];
    for (const each of both) {
      await until("all slots but one run", 120_000, async () => {
        const { damaged, running = [], elsewhere = [], ...others } = await states(each);
        const isShared = Math.abs(running.length - elsewhere.length) <= 1;
        return damaged?.join() === String(slot) && isShared && Object.keys(others).length === 0;
      });
      await until("it is ready", 30_000, async () => (await readiness(each)) === "200 ok\n");
    }
    const command = `\`nats stream purge ${nats.logStream} --subject ${nats.logSubject}.${slot}\``;
    for (const each of both) {
      const told = (await each.status()).fleet?.slots[slot];
      expect(told).toMatchObject({ state: "damaged", reason: expect.stringContaining("WF_CHECKPOINT_CORRUPT") });
      expect([told?.reason, told?.functions]).toEqual([
        expect.stringContaining(command),
        expect.arrayContaining(["recorder-0"]),
      ]);
      const { stdout } = await execute(process.execPath, [bin, "slots", "--data", each.options.data]);
      expect(stdout).toContain(`\nslot ${slot} is stopped: WF_CHECKPOINT_CORRUPT: `);
    }
    // Each of the other functions receives the changes.
    await on.load(100);
    const reports = (await Promise.all(both.map((each) => each.status()))).flatMap(({ functions }) => functions);
    for (const { name, ready, code } of reports) {
      const still = { ready: false, code: "WF_CHECKPOINT_CORRUPT" };
      expect({ ready, code }, name).toEqual(slotOf(name, slots) === slot ? still : { ready: true, code: undefined });
    }
    expect(reports.map(({ name }) => name).toSorted()).toEqual(Array.from({ length: 8 }, (_, n) => `recorder-${n}`));
    const owner = (await first.status()).fleet?.slots[slot]?.owner;
    const [holder, other] = owner === first.name ? [first, second] : [second, first];
    const left = (await lastOf(slot))?.sequence;
    expect(await lines(holder, "slot stopped")).toHaveLength(1);

    await holder.kill();
    await until("the other has it, and all others", 60_000, async () => {
      const { damaged, running } = await states(other);
      const report = (await other.status()).fleet?.slots[slot];
      return damaged?.length === 1 && running?.length === slots - 1 && report?.owner === other.name;
    });
    await until("it has said so", 30_000, async () => (await lines(other, "slot stopped")).length > 0);
    await on.load(100);
    // A replica that acquires the slot writes one message, and no message while the slot is stopped.
    const taken = (await lastOf(slot))?.sequence ?? 0;
    expect(taken).toBeGreaterThan(left ?? 0);
    await on.load(20);
    expect((await lastOf(slot))?.sequence).toBe(taken);
    expect(await lines(other, "slot stopped")).toHaveLength(1);

    await repair(slot);
    await until("it runs", 60_000, async () => (await states(other)).running?.length === slots);
    await until("its functions catch up", 60_000, async () => {
      const found = (await other.status()).functions.find((each) => each.name === "recorder-0");
      return found?.ready && found.lastEvent !== undefined;
    });
    const lease = `/apis/coordination.k8s.io/v1/namespaces/${on.namespace}/leases/watchfire-slot-${slot}`;
    await until("its Lease says so", 20_000, async () => {
      const { metadata } = await admin.get(lease);
      return metadata.annotations?.["watchfire.dev/damaged"] === undefined;
    });
    expect([await readiness(other), other.exitStatus]).toEqual(["200 ok\n", null]);
  }, 300_000);

  test("makes a replica that has no other unready, with the code, until it is repaired, also where NATS is away meanwhile", async () => {
    await using world = await fixture(1, 1);
    const { on, start, server, lastOf, damage, repair } = world;
    const former = await start();
    await until("it is ready", 60_000, async () => (await readiness(former)).startsWith("200"));
    await on.load(20);
    // `damage` deletes the message before the last one.
    await until("its slot has two messages", 60_000, async () => ((await lastOf(0))?.note.after ?? 0) > 0);
    await former.kill();
    await damage(0);
    const replica = await start();
    await until("it says why", 60_000, async () => (await readiness(replica)).includes("WF_CHECKPOINT_CORRUPT"));
    expect(await readiness(replica)).toMatch(/^503 not ready: WF_CHECKPOINT_CORRUPT: /);
    await server.kill();
    const looked = async () => (await lines(replica, "checkpoints cannot be opened yet")).length > 0;
    await until("it looks at the slot", 60_000, async () => replica.exitStatus !== null || looked());
    expect(replica.exitStatus).toBeNull();
    await server.start();
    await until("it can be repaired", 30_000, () => repair(0));
    await until("it is ready again", 60_000, async () => (await readiness(replica)) === "200 ok\n");
    await until("it works", 60_000, async () => (await replica.status()).functions[0]?.ready);
  }, 200_000);
});
