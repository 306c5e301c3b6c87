import { expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { shareOf, wholeReport } from "../../runtime/control/function-status/function-object.ts";
import { withStill } from "../../runtime/host/merged-status.ts";
import type { Ownership } from "../../runtime/host/ownership.ts";
import { publicationOf } from "../../runtime/host/publication.ts";
import { reportOf } from "../control/function-status/report.ts";

const [first, other] = [1, 5];

const hot = reportOf();

/** The publication of one process of a fleet that holds these slots and sees these owners. */
function toldBy(owner: string, here: readonly number[], owners: Record<number, string>) {
  const live = { all: [{ name: "hot", origin: { type: "folder", manifest: "f" } }], rejected: [], isKnown: () => true };
  const runs = new Map(here.map((slot) => [slot, { active: {}, holds: true, isEnding: false, live }]));
  const ownership = {
    owner,
    owners: Array.from({ length: 8 }, (_, slot) => owners[slot]),
    partitions: runs as unknown as Ownership["partitions"],
    ...{ names: ["hot"], slotsOf: () => [first, other], originOf: () => undefined },
  };
  const { functions } = publicationOf(ownership, [hot]);
  const [{ report, sharing, isStill } = {}] = functions;
  if (!report || !sharing || !isStill) throw new TypeError("it tells of no part");
  return { report, sharing, isStill, runs };
}

test("what a replica's earlier process told of its part says nothing of the process after it", () => {
  const before = toldBy("b#1", [other], { [first]: "a#3", [other]: "b#1" });
  const shares = new Map([[before.sharing.replica, shareOf(before.report, before.sharing.here)]]);
  const whole = (owner: string) => {
    const { report, sharing } = toldBy("a#3", [first], { [first]: "a#3", [other]: owner });
    return wholeReport(report, sharing.elsewhere, shares);
  };
  expect(whole("b#1")).toMatchObject({ ready: true });
  expect(whole("b#2")).toMatchObject({ ready: false, reason: "Starting" });
  expect(whole("b#2").message).toBe("b has slot 5, and has not reported its state");
});

test("a part that a replica lets go of, or loses, is not its own to tell from then on", () => {
  const owners = { [first]: "a#3", [other]: "a#3" };
  const kept = toldBy("a#3", [first, other], owners);
  expect(kept.isStill()).toBe(true);
  const [left, ended] = [toldBy("a#3", [first, other], owners), toldBy("a#3", [first, other], owners)];
  left.runs.delete(first);
  expect(left.isStill()).toBe(false);
  Object.assign(ended.runs.get(other) ?? {}, { isEnding: true });
  expect(ended.isStill()).toBe(false);
});

test("a function whose slot stands still is told of by the replica that has the slot, and its object stays", () => {
  const live = { all: [], rejected: [], isKnown: () => false };
  const damage = new WatchfireError("WF_CHECKPOINT_CORRUPT", { what: "its snapshot is gone" });
  const run = { active: undefined, damage, holds: true, isEnding: false, live };
  const runs = new Map([[first, run]]) as unknown as Ownership["partitions"];
  const origin = { type: "folder", manifest: "f" } as const;
  const told = (name: string) => (name === "hot" ? origin : undefined);
  const { functions, isGone } = publicationOf(
    { owner: "a#1", owners: [], partitions: runs, names: ["hot"], slotsOf: () => [first], originOf: told },
    withStill([], new Map([["hot", damage]])),
  );
  expect(functions).toMatchObject([
    { origin, report: { name: "hot", ready: false, reason: "CheckpointFailing", code: "WF_CHECKPOINT_CORRUPT" } },
  ]);
  expect([isGone("hot"), isGone("removed")]).toEqual([false, false]);
});

test("a function whose slot is given away, or lost, is no longer told of, though what it did is still reported", () => {
  const live = { all: [{ name: "hot", origin: { type: "folder", manifest: "f" } }], rejected: [], isKnown: () => true };
  const run = { active: {}, holds: true, isEnding: false, live };
  const told = (over: object) => {
    const partitions = new Map([[first, { ...run, ...over }]]) as unknown as Ownership["partitions"];
    const origin = { type: "folder", manifest: "f" } as const;
    const catalogue = { names: ["hot"], slotsOf: () => [first], originOf: () => origin };
    const { functions } = publicationOf({ owner: "a#1", owners: [], partitions, ...catalogue }, [hot]);
    return functions.length;
  };
  expect([told({}), told({ isEnding: true }), told({ holds: false })]).toEqual([1, 0, 0]);
});
