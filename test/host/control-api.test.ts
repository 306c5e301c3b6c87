import { expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { type ControlApiParts, functionDesk } from "../../runtime/host/control-api.ts";
import type { ControlApi } from "../../runtime/observe/control-api.ts";
import { trigger } from "../rbac/trigger.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** One shard of a function that reads no namespace. */
const shard = {
  pauses: { pause: async () => true },
  dispatcher: { loaded: () => ({ runs: [], namespaces: () => [], saved: async () => {} }) },
  live: () => ({ manifest: { triggers: [trigger({ namespaces: { type: "names", names: [] } })] } }),
};

const deskOf = (elsewhere?: string): ControlApi =>
  functionDesk({
    known: () => ["greet"],
    acting: () => [shard],
    elsewhere: () => elsewhere,
    recorder: { ask: async () => ({ taken: [], left: 0, recording: "1" }) },
    redactor: { redact: (_: string, text: string) => text },
    clock: new VirtualClock(),
    log: { info: () => {} },
  } as unknown as ControlApiParts);

const questions: readonly [string, (desk: ControlApi) => Promise<object>][] = [
  ["runs", (desk) => desk.runs("greet")],
  ["logs", (desk) => desk.logs("greet", 0, 0)],
  ["record", (desk) => desk.record("greet", { count: 1 })],
  ["redeliver --all", (desk) => desk.redeliver("greet", { all: true })],
  ["pause", (desk) => desk.pause("greet")],
];

test.each(questions)("the answer to %s says where the function's other shards are, if any", async (_, ask) => {
  expect(JSON.stringify(await ask(deskOf("slot 3 is with b")))).toContain("slot 3 is with b");
  expect(JSON.stringify(await ask(deskOf()))).not.toMatch(/elsewhere|alone/);
});

test("the runs of a function that is gone are those of the history, and a name that never ran is refused", async () => {
  const run = { function: "old", run: "id", at: 0, detail: {}, called: 0, waited: null, cpu: null, heap: null };
  const desk = functionDesk({
    acting: (name: string) => {
      throw new WatchfireError("WF_RUNTIME_NO_FUNCTION", { what: "there is no such function", actual: name });
    },
    names: () => [],
    history: {
      isOn: true,
      find: async ({ function: name }: { function?: string }) => (name === "old" ? [run] : []),
      linesAfter: async () => [],
    },
    clock: new VirtualClock(),
    log: { info: () => {} },
  } as unknown as ControlApiParts);
  expect((await desk.runs("old")).runs).toMatchObject([{ function: "old", id: "id" }]);
  expect(await desk.logs("old", 0, 0)).toEqual({ lines: [] });
  await expect(desk.runs("never")).rejects.toThrow("WF_RUNTIME_NO_FUNCTION");
});
