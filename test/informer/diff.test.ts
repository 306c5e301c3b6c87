import { describe, expect, it } from "vitest";
import { MassDeletionGuard } from "../../runtime/informer/list/diff.ts";

describe("the guard against mass deletion", () => {
  it("believes a list that empties most of a large set only when a second one says so, 30 s later", () => {
    const guard = new MassDeletionGuard();
    expect(guard.believes(80, 150, 1_000)).toBe(false);
    expect(guard.believes(80, 150, 30_999)).toBe(false);
    expect(guard.believes(80, 150, 31_000)).toBe(true);
    expect(guard.believes(80, 150, 31_001)).toBe(false);
  });

  it("believes at once what is small, and forgets its suspicion after a list that looks right", () => {
    const guard = new MassDeletionGuard();
    expect(guard.believes(100, 100, 0)).toBe(true);
    expect(guard.believes(75, 150, 0)).toBe(true);
    expect(guard.believes(150, 150, 0)).toBe(false);
    expect(guard.believes(0, 150, 10_000)).toBe(true);
    expect(guard.believes(150, 150, 31_000)).toBe(false);
  });
});
