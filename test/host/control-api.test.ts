import { expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { type ControlApiParts, createControlApi } from "../../runtime/host/control-api.ts";
import type { ControlApi } from "../../runtime/observe/control-api.ts";
import { trigger } from "../rbac/trigger.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** One shard of a function that reads no namespace. */
const shard = {
  pauses: { pause: async () => true },
  dispatcher: { loaded: () => ({ runs: [], namespaces: () => [], saved: async () => {} }) },
  live: () => ({ manifest: { triggers: [trigger({ namespaces: { type: "names", names: [] } })] } }),
};

const apiOf = (elsewhere?: string): ControlApi =>
  createControlApi({
    known: () => ["greet"],
    acting: () => [shard],
    elsewhere: () => elsewhere,
    recorder: { ask: async () => ({ taken: [], left: 0, recording: "1" }) },
    redactor: { redact: (_: string, text: string) => text },
    clock: new VirtualClock(),
    log: { info: () => {} },
  } as unknown as ControlApiParts);

const questions: readonly [string, (api: ControlApi) => Promise<object>][] = [
  ["runs", (api) => api.runs("greet")],
  ["logs", (api) => api.logs("greet", 0, 0)],
  ["record", (api) => api.record("greet", { count: 1 })],
  ["redeliver --all", (api) => api.redeliver("greet", { all: true })],
  ["pause", (api) => api.pause("greet")],
];

test.each(questions)("the answer to %s says where the function's other shards are, if any", async (_, ask) => {
  expect(JSON.stringify(await ask(apiOf("slot 3 is with b")))).toContain("slot 3 is with b");
  expect(JSON.stringify(await ask(apiOf()))).not.toMatch(/elsewhere|alone/);
});

test("the runs of a function that is gone are those of the history, and a name that never ran is refused", async () => {
  const run = { function: "old", run: "id", at: 0, detail: {}, called: 0, waited: null, cpu: null, heap: null };
  const api = createControlApi({
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
  expect((await api.runs("old")).runs).toMatchObject([{ function: "old", id: "id" }]);
  expect(await api.logs("old", 0, 0)).toEqual({ lines: [] });
  await expect(api.runs("never")).rejects.toThrow("WF_RUNTIME_NO_FUNCTION");
});
