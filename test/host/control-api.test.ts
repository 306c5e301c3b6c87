import { expect, test } from "vitest";
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
