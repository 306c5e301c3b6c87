import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { nextOf } from "../../runtime/control/explain/answer.ts";
import { type ExplainedFunction, explain, explainShards } from "../../runtime/control/explain/explainer.ts";
import { explainSchedule } from "../../runtime/control/explain/schedule.ts";
import type { FunctionDispatch, ObjectReport } from "../../runtime/engine/function-dispatch.ts";
import type { DeadLetterSummary } from "../../runtime/journal/batch.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import type { KubeTransport } from "../../runtime/kube/transport.ts";
import type { Trigger } from "../../runtime/manifest/function.ts";
import type { Explanation } from "../../runtime/observe/explanation.ts";
import { change } from "../engine/fixture.ts";
import { schedule } from "../engine/schedule/fixture.ts";
import { trigger } from "../rbac/trigger.ts";
import { VirtualClock } from "../virtual-clock.ts";

const away = async (): Promise<never> => Promise.reject(new Error("connect ECONNREFUSED"));
const transport: KubeTransport = { description: "none", request: away, json: away, close: async () => {} };
const clock = new VirtualClock();

/** The report of an object without any events. */
const quiet: ObjectReport = {
  position: { lowWaterMark: resourceVersion("7"), ready: true },
  known: { resourceVersion: resourceVersion("5"), deleted: false },
  hasNeverMatched: false,
  lane: undefined,
  waits: false,
  filtered: [],
  runs: [],
  next: undefined,
};

const head = { type: "Added", attempts: 2, trigger: "settings" } as const;
const lane = { waiting: 1, head, running: false, retrying: false, requeued: false, blocked: false, held: false };
const letter = {
  letter: "9",
  trigger: "settings",
  namespace: "team-a",
  name: "a",
  type: "Modified",
  attempts: 5,
  failedAt: 1_000,
  error: { name: "TypeError", message: "the key is s3cr3t\nat x", stack: "" },
} as DeadLetterSummary;

interface Given {
  readonly known?: Partial<ObjectReport>;
  readonly status?: ExplainedFunction["report"];
  readonly letters?: readonly DeadLetterSummary[];
  readonly trigger?: Partial<Trigger>;
}

async function answerTo({ known, status, letters = [], trigger: more }: Given) {
  const subject: ExplainedFunction = {
    report: status ?? { name: "copy", ready: true },
    triggers: [trigger({ name: "settings", ...more })],
    dispatch: { object: async () => ({ ...quiet, ...known }) } as unknown as FunctionDispatch,
    schedules: [],
    sourceOf: ({ apiVersion, kind }, namespace) => ({ apiVersion, kind, namespace }),
    statusOf: () => undefined,
  };
  const redact = (_: string, text: string) => text.replace("s3cr3t", "[redacted]");
  const parts = {
    transport,
    discovery: new Discovery(transport, clock),
    clock,
    redact,
    deadLetters: { list: async () => letters },
  };
  const { triggers } = await explain(subject, { function: "copy", namespace: "team-a", name: "a" }, parts);
  return triggers[0];
}

it.each<readonly [string, Given, object]>([
  [
    "a function that takes no more says so before what its object's lane says",
    { status: { name: "copy", ready: false, reason: "Backlogged", message: "its share is used up" }, known: { lane } },
    { reason: "function", why: "Backlogged: its share is used up" },
  ],
  [
    "another source's trouble is no reason",
    { status: { name: "copy", ready: false, reason: "KindMissing", message: "no such kind" }, known: { lane } },
    { reason: "queue", why: "one of its events waits: its Added waits for its turn" },
  ],
  [
    "a source whose first list is not done has not brought it",
    { known: { position: { lowWaterMark: undefined, ready: false } } },
    { reason: "source", why: expect.stringContaining("its first list is not done") },
  ],
  [
    "an event of a function that is held waits",
    { known: { lane: { ...lane, held: true } } },
    { reason: "queue", why: expect.stringContaining("the function begins no attempt at present") },
  ],
  [
    "an event on disk waits",
    { known: { waits: true } },
    { reason: "queue", why: "one of its events waits: its events wait on disk for their turn" },
  ],
  [
    "an event whose handler asked for it again later has not failed",
    { known: { lane: { ...lane, head: { ...head, attempts: 0 }, retrying: true, requeued: true } } },
    { reason: "queue", why: expect.stringContaining("its handler asked by requeueAfter to be run again later") },
  ],
  [
    "an event whose first attempt was cut off has no attempt that failed",
    { known: { lane: { ...lane, head: { ...head, attempts: 0 }, retrying: true } } },
    { reason: "queue", why: expect.stringContaining("since an attempt before it failed or was cut off") },
  ],
  [
    "an event that is with the handler did fire",
    { known: { lane: { ...lane, running: true } } },
    { reason: "fired", why: "it did fire: its Added is with the handler, attempt 2" },
  ],
  [
    "a dead letter of an earlier start is the reason, though no run is on record",
    { letters: [letter] },
    { reason: "givenUp", why: expect.stringContaining("its Modified, which was given up after attempt 5") },
  ],
  [
    "another object's, or another trigger's dead letter is none",
    {
      letters: [
        { ...letter, name: "b" },
        { ...letter, trigger: "other" },
      ],
    },
    { reason: "nothing" },
  ],
  [
    "of an object that may have been skipped before this start it is said that it may",
    { trigger: { initialEvents: "Skip" } },
    { reason: "nothing", why: expect.stringContaining("objects that existed at the deployment are skipped") },
  ],
])("%s", async (_, given, expected) => {
  expect(await answerTo(given)).toMatchObject(expected);
});

const byOwner: Partial<Trigger> = { key: { type: "owner", apiVersion: "shop.example/v1", kind: "Shop" } };
it.each<readonly [string, ObjectReport["wakes"], readonly [string, string | RegExp]]>([
  ["names each", { now: { keys: ["team-a/x", "/y"] }, left: [] }, ["yes", "it wakes team-a/x, y"]],
  [
    "names the one that the object leaves",
    { now: { keys: ["team-a/x"] }, left: ["team-a/z"] },
    ["yes", "it wakes team-a/x, and team-a/z, for which it no longer counts"],
  ],
  ["says why there is none", { now: { heldBack: { type: "key" } }, left: [] }, ["no", /it has no owner of kind Shop/]],
  [
    "shows what is wrong with it without secrets",
    { now: { heldBack: { type: "keyError", message: "s3cr3t" } }, left: [] },
    ["no", /\[redacted\]$/],
  ],
  ["says where it was not asked", undefined, ["unknown", "not asked"]],
])("of the keys that a change would wake it %s", async (_, wakes, [passes, says]) => {
  const checks = (await answerTo({ known: { wakes }, trigger: byOwner }))?.checks ?? [];
  const found = checks.find(({ name }) => name === "key");
  expect(found?.passes).toBe(passes);
  expect(found?.says).toMatch(typeof says === "string" ? new RegExp(`^${says}$`) : says);
});

describe("an object that another shard has", () => {
  const answer = (trigger: unknown) => ({ triggers: [trigger] }) as unknown as Explanation;

  it.each<readonly [string, Given]>([
    ["by its namespace", { known: { position: undefined, known: undefined, isElsewhere: true } }],
    ["by its key", { known: { known: undefined, isElsewhere: true } }],
  ])("%s is said to be elsewhere, and the shard that has it is heard", async (_, given) => {
    const elsewhere = await answerTo(given);
    expect(elsewhere).toMatchObject({ reason: "shard", why: expect.stringContaining("another shard") });
    expect(elsewhere?.next).toBeUndefined();
    const here = await answerTo({ known: { isElsewhere: false } });
    for (const all of [
      [elsewhere, here],
      [here, elsewhere],
    ]) {
      expect(explainShards(all.map(answer), "slot 3 is with b").triggers).toEqual([here]);
    }
  });

  it("may be a schedule, which runs in one of them", async () => {
    const told = { next: 0, isBusy: false, runs: [], isElsewhere: false };
    const [here, elsewhere] = [false, true].map((isElsewhere) =>
      explainSchedule(schedule(), { ...told, isElsewhere }, undefined, String),
    );
    expect(here?.why).toContain("runs at 1970-01-01");
    expect(explainShards([answer(elsewhere), answer(here)], "slot 3 is with b").triggers).toEqual([here]);
    const [alone] = explainShards([answer(elsewhere)], "slot 3 is with b").triggers;
    expect(alone?.why).toBe("it runs in another shard of the function: slot 3 is with b");
  });

  it("is looked for where the other shards are", async () => {
    const elsewhere = answer(await answerTo({ known: { isElsewhere: true } }));
    const [said] = explainShards([elsewhere, elsewhere], "slot 3 is with b").triggers;
    expect(said?.why).toMatch(/another shard .*: slot 3 is with b$/);
  });
});

it("what comes next tells the keys that run, or why none does", () => {
  const live = { type: "there", change: change("Modified", "a", 8), labels: true, fields: true } as const;
  const next = (wakes: ObjectReport["wakes"]) =>
    nextOf({
      report: { ...quiet, next: { type: "Modified", heldBack: undefined, answers: [] }, wakes },
      ...{ trigger: trigger({ name: "t", ...byOwner }), namespace: "team-a", name: "a", live, source: undefined },
      ...{ letters: [], trouble: undefined, show: (text: string) => text },
    });
  expect(next({ now: { keys: ["team-a/x"] }, left: [] })).toMatch(/in its current state wakes team-a\/x$/);
  expect(next({ now: { heldBack: { type: "key" } }, left: [] })).toMatch(/is filtered: it has no owner of kind Shop/);
  expect(next(undefined)).toMatch(/reaches the handler$/);
});

it("an API server that does not answer leaves the rest of the answer, and a dead letter's error is shown without secrets", async () => {
  const checks = (await answerTo({ letters: [letter] }))?.checks ?? [];
  const found = Object.fromEntries(checks.map(({ name, passes, says }) => [name, [passes, says]]));
  expect(found).toMatchObject({
    namespace: ["yes", expect.any(String)],
    object: ["unknown", expect.stringContaining("ECONNREFUSED")],
    deadLetters: ["no", expect.stringMatching(/dead-letters show 9; TypeError: the key is \[redacted\]$/)],
  });
});
