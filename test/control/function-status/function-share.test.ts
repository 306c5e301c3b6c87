import fc from "fast-check";
import { expect, test } from "vitest";
import { shareOf, wholeReport } from "../../../runtime/control/function-status/function-object.ts";
import { type FunctionReport, totalOf } from "../../../runtime/control/function-status/function-report.ts";
import { reportOf } from "./report.ts";

const count = fc.integer({ min: 0, max: 50 });
const part = fc
  .record({ ready: fc.boolean(), deadLetters: count, failures: count, lagSeconds: count, queued: count })
  .map((more) => reportOf({ ...more, ...(!more.ready && { reason: "Paused" as const, message: "paused" }) }));

test("the whole is ready where each part is, has all their counts, and the greatest of their lags", () => {
  fc.assert(
    fc.property(part, fc.array(part, { minLength: 1, maxLength: 5 }), (first, others) => {
      const shares = new Map<string, ReturnType<typeof shareOf>>();
      const elsewhere = new Map<number, string>();
      for (const [slot, other] of others.entries()) {
        shares.set(`replica-${slot}`, shareOf(other, [slot]));
        elsewhere.set(slot, `replica-${slot}`);
      }
      const whole = wholeReport(first, elsewhere, shares);
      const all = [first, ...others];
      const sum = (of: (each: FunctionReport) => number | undefined) => totalOf(...all.map(of));
      expect(whole.ready).toBe(all.every(({ ready }) => ready));
      expect(whole.reason).toBe(whole.ready ? undefined : "Paused");
      expect(whole.deadLetters).toBe(sum(({ deadLetters }) => deadLetters));
      expect(whole.failures).toBe(sum(({ failures }) => failures));
      expect(whole.queued).toBe(sum(({ queued }) => queued));
      expect(whole.lagSeconds).toBe(Math.max(...all.map(({ lagSeconds = 0 }) => lagSeconds)));
    }),
  );
});

const told = shareOf(reportOf({ lastEvent: "2026-11-23T12:00:05Z", failures: 3 }), [4, 9]);

test("a part counts while its replica has the slots that it is of", () => {
  const elsewhere = new Map([
    [4, "other"],
    [9, "other"],
  ]);
  const mine = reportOf({ lastEvent: "2026-11-23T12:00:04Z" });
  const whole = wholeReport(mine, elsewhere, new Map([["other", told]]));
  expect(whole).toMatchObject({ ready: true, failures: 3, lastEvent: "2026-11-23T12:00:05Z" });
  const moved = wholeReport(mine, new Map([...elsewhere, [9, "third"]]), new Map([["other", told]]));
  expect(moved).toMatchObject({ ready: false, reason: "Starting", failures: 3 });
  expect(moved.message).toBe("third has slot 9, and has not reported its state");
  const grown = wholeReport(mine, new Map([...elsewhere, [11, "other"]]), new Map([["other", told]]));
  expect(grown).toMatchObject({ ready: false, reason: "Starting", failures: 0 });
});

test("a slot that no replica has is said", () => {
  const whole = wholeReport(reportOf(), new Map([[7, ""]]), new Map([["", told]]));
  expect(whole).toMatchObject({ ready: false, message: "no replica has slot 7 yet" });
});

test("a part that does not run says why before one that runs with a remark", () => {
  const remark = reportOf({ reason: "ChangeRefused", message: "refused", code: "WF_MANIFEST_DUPLICATE_KEY" });
  const stopped = shareOf(reportOf({ ready: false, reason: "Forbidden", message: "no rights" }), [1]);
  const whole = wholeReport(remark, new Map([[1, "other"]]), new Map([["other", stopped]]));
  expect(whole).toMatchObject({ ready: false, reason: "Forbidden", message: "no rights" });
  expect(whole.code).toBeUndefined();
  expect(
    wholeReport(
      remark,
      new Map([
        [4, "other"],
        [9, "other"],
      ]),
      new Map([["other", told]]),
    ),
  ).toMatchObject({
    ready: true,
    reason: "ChangeRefused",
    code: "WF_MANIFEST_DUPLICATE_KEY",
  });
});

test("a canary is reported once each part has it, and is aborted if it is aborted in one part", () => {
  const version = { runs: 3, failures: 1 };
  const canary = (id: string, state: "running" | "aborted") => {
    const since = "2026-11-28T07:00:00Z";
    return reportOf({ canary: { id, share: 10, state, since, current: version, canary: version } });
  };
  const whole = (first: FunctionReport, other: FunctionReport) =>
    wholeReport(first, new Map([[1, "other"]]), new Map([["other", shareOf(other, [1])]])).canary;
  expect(whole(canary("a", "running"), canary("a", "running"))).toMatchObject({ id: "a", state: "running" });
  expect(whole(canary("a", "running"), canary("a", "aborted"))).toMatchObject({ id: "a", state: "aborted" });
  expect(whole(canary("a", "aborted"), canary("a", "running"))).toMatchObject({ id: "a", state: "aborted" });
  expect(whole(canary("b", "running"), canary("a", "aborted"))).toBeUndefined();
  expect(whole(canary("a", "running"), reportOf())).toBeUndefined();
  expect(whole(reportOf(), canary("a", "running"))).toBeUndefined();
});
