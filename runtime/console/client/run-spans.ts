import type { AttemptRow } from "../schemas.ts";

/** A part of a run, in milliseconds since its event arrived. */
interface RunSpan {
  readonly name: string;
  readonly kind: "wait" | "attempt" | "call";
  readonly from: number;
  readonly ms: number;
  readonly isBad: boolean;
}

/** Splits a run's attempts, in the order of their ends, into deliveries: a replay or a redelivery begins with attempt 1 again. */
export function deliveriesOf(attempts: readonly AttemptRow[]): AttemptRow[][] {
  const deliveries: AttemptRow[][] = [];
  for (const [index, each] of attempts.entries()) {
    const before = attempts[index - 1];
    const last = deliveries.at(-1);
    // An interrupted attempt is not counted: the next one may have its number.
    const isNext = before && (each.attempt > before.attempt || before.outcome === "interrupted");
    if (last && isNext) last.push(each);
    else deliveries.push([each]);
  }
  return deliveries;
}

/** Returns the spans of one delivery in their order. The clock starts with the arrival of the event, or with the first attempt. */
export function spansOf(attempts: readonly AttemptRow[]): RunSpan[] {
  const begins = attempts.map(({ at, durationMs }) => Date.parse(at) - durationMs);
  const [first] = attempts;
  if (!first) return [];
  const start = Math.min(...begins) - (first.waitedMs ?? 0);
  return attempts.flatMap((attempt, index) => {
    const from = Math.max(0, (begins[index] ?? start) - start);
    // The end of the attempt before, or the arrival.
    const before = index === 0 ? 0 : Date.parse(attempts[index - 1]?.at ?? "") - start;
    const waited: RunSpan[] =
      from - before < 1
        ? []
        : [{ name: index === 0 ? "Waiting" : "Backoff", kind: "wait", from: before, ms: from - before, isBad: false }];
    const calls = (attempt.listedCalls ?? []).map((call): RunSpan => {
      const name = `${call.operation} ${call.target}`;
      return {
        name,
        kind: "call",
        from: Math.max(0, Date.parse(call.at) - start),
        ms: call.durationMs,
        isBad: call.result !== "ok",
      };
    });
    const isBad = attempt.outcome !== "ok";
    return [
      ...waited,
      { name: `Attempt ${attempt.attempt}`, kind: "attempt", from, ms: attempt.durationMs, isBad },
      ...calls.toSorted((a, b) => a.from - b.from),
    ];
  });
}
