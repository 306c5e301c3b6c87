import { expect, it } from "vitest";
import { KeyBackoff } from "../../../runtime/engine/work/key-backoff.ts";
import { VirtualClock } from "../../virtual-clock.ts";

it("the failures of a hundred thousand keys count, and those of more begin anew, the oldest first", () => {
  const rests = new KeyBackoff(new VirtualClock(), () => 0);
  const retry = { maxAttempts: 3, initialDelayMs: 1_000, maxDelayMs: 86_400_000, factor: 2 };
  const fails = (key: number) => rests.recordFailure(`a/${key}`, retry, 1, undefined);
  for (let key = 0; key <= 100_000; key++) fails(key);
  const longest = [1, 100_000].map((key) => rests.msOf(`a/${key}`));
  expect([rests.msOf("a/0"), ...longest]).toEqual([0, 1_000, 1_000]);
  expect([fails(100_000), fails(0)]).toEqual([2_000, 1_000]);
});
