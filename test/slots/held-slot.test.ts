import { expect, test } from "vitest";
import { describeFleet } from "../../runtime/host/fleet-owner.ts";
import type { Partition } from "../../runtime/host/partition.ts";
import { HeldSlot } from "../../runtime/slots/held-slot.ts";
import type { Fate, SimulatedLease } from "../lease/simulated-leases.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { SimulatedFleet } from "./simulated-fleet.ts";

/** A slot of a replica, whose Lease refuses writes while `refusal` is set. */
async function held() {
  const clock = new VirtualClock();
  const simulated = new SimulatedFleet(clock).lease("slot-0");
  const way: { fate: Fate; seize: SimulatedLease["seize"] } = {
    fate: { thereMs: 5, backMs: 5 },
    seize: (...as) => simulated.seize(...as),
  };
  const lease = simulated.api(clock, () => way.fate);
  const created = lease.create({ holder: "a#1", durationMs: 10_000, transitions: 1 }, 3_000);
  await clock.advance(10);
  const record = await created;
  if (record === "conflict") throw new Error("it exists already");
  const server = { refusal: "" };
  const told: string[] = [];
  const tell = (fields: object, message: string) => void told.push(`${message} ${JSON.stringify(fields)}`);
  const api: typeof lease = {
    ...lease,
    update: (of, change, ms) =>
      server.refusal ? Promise.reject(new Error(server.refusal)) : lease.update(of, change, ms),
  };
  const log = { info: tell, warn: tell };
  return {
    clock,
    server,
    told,
    lease: way,
    slot: new HeldSlot({ slot: 0, record, api, isAlive: () => true, clock, log }),
  };
}

test("a slot whose Lease cannot be written says why with a code, once in the log and in /status while that is so", async () => {
  const { clock, server, told, slot } = await held();
  server.refusal = "leases is forbidden";
  const written = slot.annotate({ mark: "9" });
  await clock.advance(900);
  expect([slot.unwritten, told]).toEqual([undefined, []]);
  await clock.advance(60_000);
  expect(told).toEqual([`lease not written ${JSON.stringify({ error: slot.unwritten?.message })}`]);
  const run = { held: slot, active: { dispatcher: { status: () => [] } } } as unknown as Partition;
  const status = () => {
    return describeFleet("a", 1, undefined, new Map([[0, run]]), { names: [], slotsOf: () => [] }, undefined).slots[0];
  };
  expect(status()).toMatchObject({
    state: "running",
    reason: expect.stringMatching(/^WF_LEASE_UNWRITTEN: .*slot 0.*leases is forbidden/),
  });
  server.refusal = "";
  await clock.advance(1_000);
  await written;
  expect([slot.annotations, status()?.reason, told.length]).toEqual([{ mark: "9" }, undefined, 2]);
});

test("a slot's number is raised while the slot is held, also if an answer is lost, and not after another has taken it", async () => {
  const { clock, slot, lease } = await held();
  const raised = slot.raise(7);
  await clock.advance(100);
  expect([(await raised)?.number, slot.fence.number]).toEqual([8, 8]);
  lease.fate = { thereMs: 5, backMs: 5, accident: "answer lost" };
  const again = slot.raise(9);
  await clock.advance(100);
  lease.fate = { thereMs: 5, backMs: 5 };
  await clock.advance(5_000);
  expect([(await again)?.number, slot.fence.number]).toEqual([10, 10]);
  lease.seize("b#1", 10);
  const late = slot.raise(20);
  await clock.advance(100);
  expect(await late).toBeUndefined();
});
