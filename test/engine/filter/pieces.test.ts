import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { type Meter, triggerLimit } from "../../../runtime/cel/meter.ts";
import { Expression } from "../../../runtime/engine/filter/expression.ts";
import { Filter } from "../../../runtime/engine/filter/filter.ts";

const unknown = { hash: undefined, matched: undefined, possiblyOutdated: false };
const body = Buffer.from(JSON.stringify({ n: 1 }));

/**
 * Limit of one piece's cost: 10 ms on a fast core, by the test that measures a unit. A loop is charged after its last iteration.
 */
const mostUnits = 1_101_000;

/** An expression that costs about so many units; above 150,000, nested loops. */
const costing = (thousands: number, ends: string) =>
  `lists.range(${Math.max(1, Math.round(Math.sqrt(thousands * 60)))}).all(a, lists.range(${Math.max(1, Math.round(Math.sqrt(thousands * 60)))}).all(b, a + b < 100000)) && ${ends}`;

function filterOf(costs: readonly (readonly [number, string])[]) {
  const heard: string[] = [];
  const matchConditions = costs.map(([thousands, ends], at) => ({
    name: `c${at}`,
    expression: costing(thousands, ends),
  }));
  const rules = { events: ["Added" as const], changedFields: [], matchConditions, lastBody: "Full" as const };
  return { filter: new Filter(rules, ({ condition }) => heard.push(condition)), heard };
}

/** Records the units of each slice of work until the evaluation is complete. */
function spyOnPieces() {
  const pieces = [0];
  const { evaluate } = Expression.prototype;
  vi.spyOn(Expression.prototype, "evaluate").mockImplementation(function (this: Expression, meter: Meter, ...of) {
    const outcome = evaluate.call(this, meter, ...of);
    pieces.push((pieces.pop() ?? 0) + meter.used);
    return outcome;
  });
  return pieces;
}

afterEach(() => void vi.restoreAllMocks());

const costs = fc.array(
  fc.tuple(
    fc.constantFrom(0, 10, 90, 300, 900, 5000),
    fc.constantFrom("object.n == 1", "object.n == 1", "object.missing == 1", "object.n == 2"),
  ),
  { minLength: 1, maxLength: 8 },
);

test("a piece of judging is one expression's limit and a little, and all of them come to the same verdict as the whole", async () => {
  await fc.assert(
    fc.asyncProperty(costs, async (of) => {
      const whole = filterOf(of);
      const expected = whole.filter.judge("Added", body, unknown, undefined);
      const inPieces = filterOf(of);
      const pieces = spyOnPieces();
      const found = await inPieces.filter.inPieces(
        inPieces.filter.pieces("Added", body, unknown, undefined),
        async () => {
          pieces.push(0);
        },
      );
      vi.restoreAllMocks();
      expect([found, inPieces.heard]).toEqual([expected, whole.heard]);
      expect(Math.max(...pieces)).toBeLessThanOrEqual(mostUnits);
      expect(pieces.reduce((sum, units) => sum + units)).toBeLessThanOrEqual(triggerLimit + 5000);
    }),
    { numRuns: 40 },
  );
});

test("what is judged at once is one piece, or nothing, of which nobody hears; and what took long is not begun so again", async () => {
  await fc.assert(
    fc.asyncProperty(costs, async (of) => {
      const { filter, heard } = filterOf(of);
      const pieces = spyOnPieces();
      const atOnce = filter.judgeAtOnce("Added", body, unknown, undefined);
      expect(pieces[0]).toBeLessThanOrEqual(mostUnits);
      const before = [...heard];
      const again = filter.isLong ? 0 : (pieces[0] ?? 0);
      pieces[0] = 0;
      expect(filter.judgeAtOnce("Added", body, unknown, undefined)).toEqual(atOnce);
      expect(pieces[0]).toBe(again);
      vi.restoreAllMocks();
      if (atOnce) expect(atOnce).toEqual(filter.judge("Added", body, unknown, undefined));
      else expect([before, heard]).toEqual([[], []]);
    }),
    { numRuns: 40 },
  );
});
