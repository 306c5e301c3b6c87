import { expect, test } from "vitest";
import { GuestCalls } from "../../runtime/sandbox/host/guest-calls.ts";
import type { Caller, HostReply } from "../../runtime/sandbox/host-calls.ts";
import { settle } from "../virtual-clock.ts";

/** The calls of a function, whose answers the test gives. */
function callsOf() {
  const begun: ((reply: HostReply) => void)[] = [];
  const refused: number[] = [];
  const answers: string[] = [];
  const calls = new GuestCalls({
    executor: {
      isFull: false,
      send: (frame, sent) => {
        answers.push(...(frame.segments ?? []).map(String));
        sent?.();
      },
    },
    functionId: 1,
    hostCalls: {
      call: () => new Promise((resolve) => begun.push(resolve)),
      refused: async (_: Caller, length: number) => void refused.push(length),
    },
    isGone: () => false,
    unheard: () => {},
    unreadable: (_, fault) => {
      throw fault;
    },
  });
  const signal = new AbortController().signal;
  const attempt = { caller: { function: "f" }, calls: 0, isOver: false, isDone: false, signal };
  let last = 0;
  const make = (operation: string, args: string) =>
    calls.make(1, { call: ++last, no: 1, operation, args }, attempt as never);
  return { make, begun, refused, answers };
}

test.each(["kube.get", "kube.delete", "cache.get", "cache.list"])(
  "%s with a name that is longer than any is refused before anything else is done with it, in its function's turn",
  async (operation) => {
    const { make, begun, refused, answers } = callsOf();
    make(operation, JSON.stringify({ ref: { name: "x".repeat(4_000_000) } }));
    await settle();
    expect([begun.length, refused]).toEqual([0, [4_000_019]]);
    expect(answers).toEqual([expect.stringContaining("the arguments have more than 65536 characters")]);
  },
);

test("calls that wait and those that have begun hold 40 Mi characters of arguments; what comes beyond is refused in turn", async () => {
  const { make, begun, refused } = callsOf();
  const args = JSON.stringify({ object: { data: "x".repeat(1 << 20) } });
  for (let call = 0; call < 60; call++) make("kube.create", args);
  await settle();
  expect((begun.length + (60 - begun.length - refused.length)) * args.length).toBeLessThan(42 * 2 ** 20);
  expect(begun.length).toBeGreaterThan(16);
  expect(refused.length).toBeGreaterThan(10);
  // Each call is answered in the end, and calls that waited are made.
  for (let turn = 0; turn < 60; turn++) {
    for (const answer of begun) answer({ ok: true, json: "{}" });
    await settle();
  }
  expect(begun.length).toBe(60 - refused.length);
});
