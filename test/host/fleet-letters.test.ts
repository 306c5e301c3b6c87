import { expect, test } from "vitest";
import { fleetLetters } from "../../runtime/host/fleet/fleet-letters.ts";
import type { DeadLetters } from "../../runtime/journal/dead-letters.ts";

test("a page after a dead letter of another replica begins with the later slots, if it is a part of a fleet's answer", async () => {
  const asked: string[] = [];
  const slotOf = (slot: number): [number, DeadLetters] => {
    const list = async ({ after }: { after?: string | undefined }) => {
      asked.push(`${slot} after ${after}`);
      return [];
    };
    return [slot, { list } as unknown as DeadLetters];
  };
  const letters = fleetLetters(
    () => new Map([slotOf(1), slotOf(5)]),
    () => "slot 3 is with b",
  );
  await letters.list({ after: "3-7", function: undefined, isPart: true });
  expect(asked).toEqual(["5 after undefined"]);
  await letters.list({ after: "1-7", function: undefined, isPart: true });
  expect(asked.slice(1)).toEqual(["1 after 1-7", "5 after undefined"]);
  await expect(letters.list({ after: "3-7", function: undefined })).rejects.toThrow("WF_LEASE_STANDBY");
});
