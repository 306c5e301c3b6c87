// Positions on their way into a fleet and out of it, with real processes and a real nats-server, while another process
// writes. The auditor compares the cluster's history with the handlers' records.
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
  return { on, fleet, [Symbol.asyncDispose]: dispose };
}

const answer = async (replica: Replica) => (await replica.read("/readyz")).text();

const isReady = (replica: Replica) =>
  until(`${replica.name} is ready`, 60_000, async () => (await replica.read("/readyz")).ok);

/** Ends as a rollout ends it. */
async function end(replica: Replica): Promise<void> {
  replica.signal("SIGTERM");
  expect(await replica.ended()).toBe(0);
}

describe.skipIf(natsProgram === undefined)("positions", () => {
  test("go from a volume into a fleet's slots: a replica that reaches them carries them, another waits and says for what", async () => {
    await using world = await fixture(6, 1);
    const { on, fleet } = world;
    const volume = await on.start("sqlite");
    await on.begins(volume);
    await on.load(100);
    on.write(300);
    const far = await on.start("nats", fleet(8));
    await until("it says for what it waits", 20_000, async () => (await answer(far)).includes("WF_CHECKPOINT_AWAITED"));
    expect(await answer(far)).toContain(`they are on the volume of ${volume.options.pod}`);
    const near = await on.start("nats", { ...fleet(8), data: volume.options.data });
    await until("it waits for the other", 20_000, async () => (await answer(near)).includes(volume.name));
    await end(volume);
    await isReady(near);
    await isReady(far);
    expect(await near.log()).toContain('"positions carried over"');
    await on.load(50);
    const verdict = await on.verdict();
    expect(verdict, inWords(verdict)).toMatchObject({ ...noFault, flagged: 0 });
    process.stdout.write(`volume to fleet: ${inWords(verdict)}\n`);
  }, 300_000);
});
