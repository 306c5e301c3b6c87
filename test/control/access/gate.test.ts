import { expect, test } from "vitest";
import { WatchfireError } from "../../../runtime/base/errors.ts";
import type { AccountReviews } from "../../../runtime/control/access/account-reviews.ts";
import { servedConsole } from "../../console/served.ts";

/** Accounts that may do everything on the functions of their names, and on all if they are called `all`. */
const accounts = {
  callerOf: async (name: string) => {
    if (name === "unreviewed") throw new WatchfireError("WF_CONTROL_REVIEW", { what: "no answer" });
    return { kind: "account", account: { name, uid: "", groups: [], extra: {} }, until: undefined };
  },
  may: async ({ account }: { account: { name: string } }, _: string, name?: string) =>
    account.name === "all" || account.name === name,
  refusal: (_: unknown, _right: string, name: string | undefined, needing: string) =>
    new WatchfireError("WF_CONTROL_FORBIDDEN", { what: `a right on ${name} is missing, which ${needing} needs` }),
} as unknown as AccountReviews;

const served = async () => {
  const { ask, audit } = await servedConsole({ accounts });
  const as = (name: string, more: Readonly<Record<string, string>> = {}) => {
    const headers = { authorization: `Bearer ${name}`, ...more };
    return async (path: string, body?: object) => {
      const answer = await ask(path, { headers, ...(body && { method: "POST", body }) });
      return answer.status;
    };
  };
  const refusalOf = async (name: string, ids: readonly string[]) => {
    const headers = { authorization: `Bearer ${name}` };
    const { body } = await ask("/dead-letters/drop", { headers, method: "POST", body: { ids } });
    return JSON.stringify(body);
  };
  return { as, audit, refusalOf };
};

test.each(["", "/api"])("a dead letter is shown and changed by who may do so for its function (%s)", async (root) => {
  const { as } = await served();
  for (const [name, status] of [
    ["wave", 403],
    ["greet", 200],
  ] as const) {
    expect(await as(name)(`${root}/dead-letters/1`), name).toBe(status);
    expect(await as(name)(`${root}/dead-letters/replay`, { ids: ["1", "1"] }), name).toBe(status === 403 ? 403 : 409);
    expect(await as(name)(`${root}/dead-letters/drop`, { ids: ["1"] }), name).toBe(status);
  }
});

test("a change of letters of which one is unknown, or none is named, is refused to who may not change all", async () => {
  const { as } = await served();
  expect(await as("greet")("/dead-letters/drop", { ids: ["1", "7"] })).toBe(403);
  expect(await as("all")("/dead-letters/drop", { ids: ["1", "7"] })).toBe(404);
  expect(await as("greet")("/dead-letters/drop", { ids: [] })).toBe(403);
  expect(await as("greet")("/dead-letters/drop", {})).toBe(403);
  expect(await as("all")("/dead-letters/drop", {})).toBe(400);
});

test("a refusal does not say whether a dead letter exists, or of which function it is", async () => {
  const { refusalOf } = await served();
  const unseen = await refusalOf("wave", ["1"]);
  expect(unseen).toContain("does not exist, or is of a function that you may not see");
  expect(unseen).not.toContain("greet");
  expect(await refusalOf("wave", ["7"])).toBe(unseen);
});

test("a caller that cannot be reviewed is refused", async () => {
  const { as } = await served();
  expect(await as("unreviewed")("/api/overview")).toBe(503);
  expect(await as("unreviewed")("/functions/greet/pause", {})).toBe(503);
});

test("a reason is logged without control characters, at most 500 characters, and also where it is not encoded", async () => {
  const { as, audit } = await served();
  const pause = (reason: string) => as("greet", { "watchfire-reason": reason })("/functions/greet/pause", {});
  await pause(encodeURIComponent("a\u001b[2J \u202eb"));
  await pause("100%");
  await pause("x".repeat(900));
  expect(audit.map(({ reason }) => reason)).toEqual(["a\\u001b[2J \\u202eb", "100%", `${"x".repeat(499)}…`]);
});
