import { join } from "node:path";
import { expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { TypeWatch } from "../../runtime/dev/type-watch.ts";
import { folderOf } from "../tools/folder.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** A type watch whose checks end on the test's command, with the given faults. */
function fixture({ isBroken = false } = {}) {
  const folder = folderOf({ "f/handler.ts": "let a = 1;\nlet b: string = a;\n" });
  const handler = join(folder, "f/handler.ts");
  const clock = new VirtualClock();
  const ending = new AbortController();
  const checks: PromiseWithResolvers<readonly WatchfireError[]>[] = [];
  const said: string[] = [];
  const say = ({ function: name, error }: { function?: string; error?: string }, message: string) =>
    void said.push([name, message, error].filter(Boolean).join(" | "));
  const watch = new TypeWatch({
    check: () => {
      const check = Promise.withResolvers<readonly WatchfireError[]>();
      checks.push(check);
      return check.promise;
    },
    functions: () => [{ name: "f", handler, isBroken }],
    clock,
    signal: ending.signal,
    log: { info: say, warn: say } as never,
  });
  const fault = (what: string) =>
    new WatchfireError("WF_TYPES_HANDLER", { what, place: { file: handler, line: 2, column: 5 } });
  const end = async (...faults: WatchfireError[]) => {
    checks.at(-1)?.resolve(faults);
    await clock.advance(0);
  };
  return { watch, clock, checks, said, ending, fault, end };
}

test("changes in a row are one check, and a change amid a check is another after it, never beside it", async () => {
  const { watch, clock, checks, end } = fixture();
  for (let change = 0; change < 5; change++) {
    watch.changed();
    await clock.advance(500);
  }
  expect(checks).toHaveLength(0);
  await clock.advance(60_000);
  expect(checks).toHaveLength(1);
  for (let change = 0; change < 3; change++) {
    watch.changed();
    await clock.advance(60_000);
  }
  expect(checks).toHaveLength(1);
  await end();
  await clock.advance(60_000);
  expect(checks).toHaveLength(2);
  await end();
  await clock.advance(60_000);
  expect(checks).toHaveLength(2);
});

test("a fault is told once while it lasts, with the code at its place, and its end is told", async () => {
  const { watch, clock, said, fault, end } = fixture();
  const round = async (...faults: WatchfireError[]) => {
    said.length = 0;
    watch.changed();
    await clock.advance(1_000);
    await end(...faults);
    return [...said];
  };
  const [line] = await round(fault("TS1: odd"));
  expect(line).toMatch(
    /^f \| type errors found, the code runs anyway \| WF_TYPES_HANDLER \S+handler\.ts:2:5: TS1: odd;/,
  );
  expect(line).toContain("> 2 | let b: string = a;\n    |     ^");
  expect(await round(fault("TS1: odd"))).toEqual([]);
  expect(await round(fault("TS1: odd"), fault("TS2: odder"))).toEqual([expect.stringContaining("TS2")]);
  expect(await round()).toEqual(["no type errors any more"]);
  expect(await round()).toEqual([]);
});

test("of what cannot be built the compiler says nothing", async () => {
  const { watch, clock, said, fault, end } = fixture({ isBroken: true });
  watch.changed();
  await clock.advance(1_000);
  await end(fault("TS1: odd"));
  expect(said).toEqual([]);
});

test("after the end nothing is checked, and what is broken off is not told of", async () => {
  const { watch, clock, checks, said, ending } = fixture();
  watch.changed();
  await clock.advance(1_000);
  watch.changed();
  ending.abort();
  checks[0]?.reject(new WatchfireError("WF_TYPES_COMPILER", { what: "aborted" }));
  watch.changed();
  await clock.advance(60_000);
  expect([checks.length, said, clock.timers]).toEqual([1, [], 0]);
});
