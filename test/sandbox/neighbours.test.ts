import { describe, expect, it } from "vitest";
import { fixtureForTest } from "./fixture.ts";

/** CPU limit of a looping event, which is also how long others wait for its end. Milliseconds. */
const budgetMs = 4000;

describe("more loops at once than isolates may run", () => {
  it("do not keep another function waiting until one has used up its budget", async () => {
    const fixture = fixtureForTest();
    await fixture.load("loops", "export default () => { for (;;) Math.sqrt(2); };", {
      cpuMs: budgetMs,
      isolation: "Event",
    });
    await fixture.load("calm", "export default () => {};");
    let isOver = false;
    const loops = Promise.all(Array.from({ length: 4 }, () => fixture.run("loops", { timeoutMs: 60_000 })));
    const looping = loops.then(() => {
      isOver = true;
    });
    let worst = 0;
    while (!isOver) {
      const startedAt = performance.now();
      expect((await fixture.run("calm", { timeoutMs: 30_000 })).type).toBe("ok");
      worst = Math.max(worst, performance.now() - startedAt);
    }
    await looping;
    for (const outcome of await loops) {
      expect(outcome).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_CPU_BUDGET" } });
    }
    expect(worst).toBeLessThan(budgetMs / 4);
  });
});
