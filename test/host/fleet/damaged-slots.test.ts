import { expect, test } from "vitest";
import { WatchfireError } from "../../../runtime/base/errors.ts";
import { DamagedSlots, damageOn } from "../../../runtime/host/fleet/damaged-slots.ts";
import { corrupt } from "../../../runtime/journal/nats/fault.ts";
import { createLog } from "../../../runtime/observe/log.ts";
import { VirtualClock } from "../../virtual-clock.ts";

const names = { logStream: "watchfire-apps_watchfire-log", logSubject: "watchfire.apps_watchfire.log" };

/** A slot whose checkpoints are in the given `state`, with a record of what was done with it. */
function slot() {
  const clock = new VirtualClock();
  const said: string[] = [];
  const done: string[] = [];
  const log = createLog("info", { write: (line: string) => void said.push(JSON.parse(line).error) });
  const state: { fault: WatchfireError | undefined; annotations: Record<string, string> } = {
    fault: corrupt(names, "3", "a message is gone"),
    annotations: {},
  };
  const held = {
    slot: 3,
    get annotations() {
      return state.annotations;
    },
    annotate: async (change: Readonly<Record<string, string | undefined>>) => {
      const entries = Object.entries({ ...state.annotations, ...change });
      state.annotations = Object.fromEntries(entries.flatMap(([key, value]) => (value ? [[key, value]] : [])));
    },
  };
  const damage = new DamagedSlots({ held, clock, log });
  const act = (what: string) => async () => {
    done.push(what);
    if (state.fault) throw state.fault;
    return what;
  };
  const ways = { open: act("open"), read: act("read"), damaged: () => {} };
  return { clock, said, done, state, damage, open: (signal: AbortSignal) => damage.untilWhole(ways, signal) };
}

test("a slot that cannot be read is opened once, then only looked at, ever less, until it is whole", async () => {
  const { clock, said, done, state, damage, open } = slot();
  const opened = open(new AbortController().signal);
  await clock.advance(600_000);
  const looks = done.splice(0);
  expect([looks[0], new Set(looks.slice(1))]).toEqual(["open", new Set(["read"])]);
  expect(looks.length).toBeLessThan(50);
  expect(said).toEqual([state.fault?.message]);
  expect([damage.fault, damageOn(state.annotations)]).toEqual([state.fault, state.fault?.message]);
  state.fault = undefined;
  await clock.advance(15_000);
  expect([await opened, done, damage.fault, state.annotations]).toEqual(["open", ["read", "open"], undefined, {}]);
});

test("a slot that turns out to be damaged otherwise says that too, once", async () => {
  const { clock, said, state, open } = slot();
  const ending = new AbortController();
  const opened = open(ending.signal).catch(() => "ended");
  await clock.advance(60_000);
  state.fault = corrupt(names, "3", "its snapshot is gone");
  await clock.advance(60_000);
  expect(said.map((line) => /used: ([^;]+)/.exec(line)?.[1])).toEqual(["a message is gone", "its snapshot is gone"]);
  ending.abort();
  expect(await opened).toBe("ended");
});

test("what is no damage ends the opening at once, also of a slot that stood still", async () => {
  const { clock, damage, state, open } = slot();
  const opened = open(new AbortController().signal).catch((error) => error);
  await clock.advance(1);
  expect(damage.fault).toBe(state.fault);
  state.fault = new WatchfireError("WF_CHECKPOINT_FENCED", { what: "another has it" });
  await clock.advance(15_000);
  expect((await opened).code).toBe("WF_CHECKPOINT_FENCED");
});
