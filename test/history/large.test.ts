import { expect, test } from "vitest";
import { servedConsole } from "../console/served.ts";
import { folderOf } from "../tools/folder.ts";
import { endedRun, failure, historyOf, StandingClock } from "./collected.ts";

const count = 100_000;

test("of 100,000 runs, the first rows of every question are there in 100 ms", async () => {
  const clock = new StandingClock();
  const { history } = historyOf({ folder: folderOf({}), clock });
  const calls = { calls: [], more: 0 };
  for (let n = 0; n < count; n++) {
    const over = {
      function: `function-${n % 10}`,
      endedAt: clock.at + n,
      ...(n % 50 === 0 ? { outcome: failure } : { calls }),
    };
    history.runs.ended.push(endedRun(over, `object-${n % 5000}`));
    if (n % 1000 === 999) await history.flush();
  }
  clock.at += count;
  const took: Record<string, number> = {};
  const questions = {
    newest: {},
    "of a function": { function: "function-3" },
    failed: { outcome: "failed" },
    "failed of a function that has none": { outcome: "permanent", function: "function-3" },
    "of an object": { object: "object-4999" },
    "of an object that has none": { object: "nothing" },
    "of a trigger that has none": { trigger: "nothing" },
    "of one event": { id: endedRun({}, "object-77").id },
    "before the last minute": { before: clock.at - 60_000 },
  } as const;
  for (const [name, question] of Object.entries(questions)) {
    const times = [];
    for (let n = 0; n < 3; n++) {
      const from = performance.now();
      const found = await history.find({ ...question, limit: 100 });
      times.push(performance.now() - from);
      expect(found.length > 0, name).toBe(!/none/.test(name));
    }
    // The machine may have been busy with something else.
    took[name] = Math.min(...times);
  }
  // The whole answer of the console's route, as the server makes it.
  const { ask, bearing } = await servedConsole({ history });
  const times: number[] = [];
  for (let n = 0; n < 5; n++) {
    const from = performance.now();
    const { body } = await ask("/api/runs?limit=100", { headers: bearing });
    times.push(performance.now() - from);
    expect(JSON.parse(body).runs).toHaveLength(100);
  }
  took["first rows of /api/runs"] = Math.min(...times);
  process.stderr.write(`100,000 runs, ms: ${JSON.stringify(took)}\n`);
  expect((await history.find({ limit: 1 }))[0]?.at).toBe(clock.at - 1);
  expect(Math.max(...Object.values(took)), JSON.stringify(took)).toBeLessThan(100);
});
