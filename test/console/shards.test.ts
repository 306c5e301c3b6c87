import { expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import type { FleetPeer } from "../../runtime/console/fleet-link.ts";
import type { AccountReviews } from "../../runtime/control/access/account-reviews.ts";
import type { RecordQuestion, RedeliverQuestion } from "../../runtime/observe/control-api.ts";
import type { Explanation } from "../../runtime/observe/explanation.ts";
import { servedConsole } from "./served.ts";

type Operations = Parameters<typeof servedConsole>[0] & object extends { operations?: infer O } ? O : never;

/** Two replicas, `a` and `b`, that have a shard of greet each. `b` is asked by `a` alone. */
async function twoShards(a: Operations, b: Operations, accounts?: AccountReviews) {
  const peers: FleetPeer[] = [];
  const slots = ["a", "b"].map((owner, slot) => ({ slot, owner, state: "running", functions: ["greet"] }));
  const replicaOf = (replica: string, operations: Operations) =>
    servedConsole({
      operations,
      ...(accounts && { accounts }),
      fleet: { replica, replicas: 2, slots },
      replica: { owner: `${replica}#1`, peers: () => peers },
    });
  const served = { a: await replicaOf("a", a), b: await replicaOf("b", b) };
  peers.push(
    { owner: "a#1", announcement: served.a.link?.announcement },
    { owner: "b#1", announcement: served.b.link?.announcement },
  );
  const ask = async (path: string, body?: unknown, headers: Readonly<Record<string, string>> = served.a.bearing) => {
    const method = body === undefined ? "GET" : "POST";
    const { status, body: text } = await served.a.ask(path, { method, headers, body });
    return { status, data: JSON.parse(text) };
  };
  return { ...served, ask };
}

const explanation = (reason: "shard" | "fired" | "nothing", why: string): Explanation => ({
  function: { name: "greet", ready: true },
  object: { namespace: "default", name: "ada" },
  triggers: [{ trigger: "t", apiVersion: "v1", kind: "ConfigMap", reason, why, checks: [], filtered: [], runs: [] }],
});

const refused = (
  what: string,
  code: "WF_RUNTIME_NO_RUN" | "WF_RUNTIME_NOT_REDELIVERED" = "WF_RUNTIME_NOT_REDELIVERED",
) => Promise.reject(new WatchfireError(code, { what }));

const redeliverPath = "/functions/greet/redeliver";

test.each(["", "/api"])(
  "an object is explained by the shard that has it, whichever replica is asked (%s)",
  async (root) => {
    const asked: unknown[] = [];
    const { ask, b } = await twoShards(
      {
        explain: async (_, isPart) => {
          asked.push(isPart);
          return explanation("shard", "another shard has it");
        },
      },
      { explain: async () => explanation("fired", "it did fire") },
    );
    const { data } = await ask(`${root}/explain/greet?namespace=default&name=ada`);
    expect(data.triggers).toMatchObject([{ reason: "fired" }]);
    expect(data.elsewhere).toBeUndefined();
    expect(asked).toEqual([true]);
    b.link?.close();
    const { data: less } = await ask(`${root}/explain/greet?namespace=default&name=ada`);
    expect(less.elsewhere).toMatch(/^b did not answer: .*ECONNREFUSED/);
    expect(less.triggers[0].why).toMatch(/^another shard has it: b did not answer/);
  },
);

test.each(["", "/api"])("an object, a run and a schedule are redelivered by the shard that can (%s)", async (root) => {
  const questions: RedeliverQuestion[] = [];
  const { ask, a, b } = await twoShards(
    { redeliver: () => refused("by the trigger t, another shard has the object") },
    {
      redeliver: async (_, question) => {
        questions.push(question);
        return { queued: 1, skipped: [] };
      },
    },
  );
  const all = [{ object: { namespace: "default", name: "ada" } }, { run: "u/12/Added" }, { schedule: true }];
  for (const question of all)
    expect((await ask(root + redeliverPath, question)).data).toEqual({ queued: 1, skipped: [] });
  expect(questions).toEqual(all);
  expect(a.audit.filter(({ verb }) => verb === "redeliver")).toHaveLength(3);
  expect(b.audit).toEqual([]);
});

test("if no shard can redeliver, the answer is the most specific refusal, and names who did not answer", async () => {
  const { ask, b } = await twoShards(
    { redeliver: () => refused("no recent run has this ID", "WF_RUNTIME_NO_RUN") },
    { redeliver: () => refused("the object has changed since") },
  );
  const both = await ask(redeliverPath, { run: "u/12/Added" });
  expect(both.status).toBe(409);
  expect(both.data.fault).toMatchObject({ code: "WF_RUNTIME_NOT_REDELIVERED", what: "the object has changed since" });
  b.link?.close();
  const one = await ask(redeliverPath, { run: "u/12/Added" });
  expect(one.status).toBe(404);
  expect(one.data.fault.what).toMatch(/^no recent run has this ID; b did not answer: /);
});

test("all objects are redelivered by all shards, and the progress is the sum until each has ended", async () => {
  let looks = 0;
  const { ask } = await twoShards(
    { redeliver: async () => ({ queued: 2, skipped: [{ why: "filtered", count: 1 }] }) },
    {
      redeliver: async (_, question) => {
        if (!("job" in question)) return { queued: 3, skipped: [], job: "7" };
        expect(question.job).toBe("7");
        const job = ++looks === 1 ? { job: "7" } : {};
        return { queued: 3 + looks, skipped: [{ why: "filtered", count: 4 }], ...job };
      },
    },
  );
  const { data: begun } = await ask(redeliverPath, { all: true });
  expect(begun).toMatchObject({ queued: 5, skipped: [{ why: "filtered", count: 1 }] });
  const { data: later } = await ask(redeliverPath, { job: begun.job });
  expect(later).toEqual({ queued: 6, skipped: [{ why: "filtered", count: 5 }], job: begun.job });
  const { data: last } = await ask(redeliverPath, { job: begun.job });
  expect(last).toEqual({ queued: 7, skipped: [{ why: "filtered", count: 5 }] });
});

test("a recording has the deliveries of all shards, and ends with as many as were asked for", async () => {
  const questions: RecordQuestion[] = [];
  const taken = (object: string) => ({ what: "added", object, fixture: {} });
  const recorder = (id: string, objects: readonly string[]) => ({
    record: async (_: string, question: RecordQuestion) => {
      questions.push(question);
      return { taken: "recording" in question ? objects.map(taken) : [], left: 0, recording: id };
    },
  });
  const { ask } = await twoShards(recorder("1", ["ada", "bob"]), recorder("4", ["eve"]));
  const path = "/functions/greet/record";
  const { data: begun } = await ask(path, { count: 4 });
  expect(begun.taken).toEqual([]);
  const { data: some } = await ask(path, { recording: begun.recording, wait: 9 });
  expect(some.taken.map(({ object }: { object: string }) => object).sort()).toEqual(["ada", "bob", "eve"]);
  const { data: rest } = await ask(path, { recording: begun.recording, wait: 9 });
  expect(rest.taken).toHaveLength(1);
  expect(rest.recording).toBeUndefined();
  expect(questions.map((each) => ("recording" in each ? `${each.recording} ${each.wait}` : each.count)).sort()).toEqual(
    ["1 1", "1 1", "4 1", "4 1", 4, 4].sort(),
  );
});

test("a pause of all shards does not say that it applies to some", async () => {
  const asked: unknown[] = [];
  const pause = async (name: string, isPart?: boolean) => {
    asked.push(isPart);
    return { changed: true, says: `${name} is paused` };
  };
  const { ask } = await twoShards({ pause }, { pause });
  expect((await ask("/functions/greet/pause", {})).data.says).toBe("greet is paused");
  expect(asked).toEqual([true, true]);
});

test("who may change one function alone changes its dead letters on another replica, and no others", async () => {
  const accounts = {
    callerOf: async (name: string) => ({ kind: "account", account: { name, uid: "", groups: [], extra: {} } }),
    may: async ({ account }: { account: { name: string } }, _: string, name?: string) => account.name === name,
    refusal: (_: unknown, right: string) => new WatchfireError("WF_CONTROL_FORBIDDEN", { what: `may not ${right}` }),
  } as unknown as AccountReviews;
  const { ask, a, b } = await twoShards({}, {}, accounts);
  const as = (name: string) => ({ authorization: `Bearer ${name}` });
  for (const [name, status] of [
    ["wave", 403],
    ["greet", 200],
  ] as const) {
    expect((await ask("/api/dead-letters/1-1", undefined, as(name))).status, name).toBe(status);
    expect((await ask("/api/dead-letters/drop", { ids: ["0-1", "1-1"] }, as(name))).status, name).toBe(status);
  }
  expect((await ask("/api/dead-letters/drop", { ids: ["1-7"] }, as("greet"))).status).toBe(403);
  expect(a.audit.filter(({ result }) => result === "done")).toMatchObject([{ verb: "drop", functions: ["greet"] }]);
  b.link?.close();
  expect((await ask("/api/dead-letters/drop", { ids: ["1-1"] }, as("greet"))).status).toBe(403);
});
