import fc from "fast-check";
import { expect, test } from "vitest";
import { DeadLetterStats } from "../../runtime/journal/dead-letter-stats.ts";

const names = ["a", "b", "c"] as const;
const arrival = fc.record({
  name: fc.constantFrom(...names),
  record: fc.integer({ min: 1, max: 20 }),
  body: fc.integer({ min: 1, max: 100 }),
});
const limits = fc.tuple(
  ...names.map(() =>
    fc.record({ maxCount: fc.integer({ min: 1, max: 6 }), maxBytes: fc.integer({ min: 20, max: 300 }) }),
  ),
);

test("whatever arrives, functions keep within their limits and all of them within the store's, and the oldest go first", () => {
  fc.assert(
    fc.property(
      fc.array(arrival, { maxLength: 60 }),
      limits,
      fc.integer({ min: 60, max: 500 }),
      (arrivals, bounds, room) => {
        const ledger = new DeadLetterStats(() => room);
        for (const [index, name] of names.entries()) ledger.limit(name, bounds[index] ?? { maxCount: 1, maxBytes: 20 });
        const kept = new Map(names.map((name) => [name, new Map<string, { record: number; body: number }>()]));
        for (const [index, { name, record, body }] of arrivals.entries()) {
          const keeps = ledger.admit(name, { record, body });
          for (const cut of ledger.cuts()) {
            const shelf = kept.get(cut.function as (typeof names)[number]) ?? new Map();
            const oldest = [...shelf.keys()].slice(0, cut.letters.length);
            expect(cut.letters).toEqual(oldest);
            for (const letter of cut.letters) shelf.delete(letter);
            for (const letter of cut.bodies) {
              expect([...shelf].find(([, size]) => size.body > 0)?.[0]).toBe(letter);
              shelf.set(letter, { record: shelf.get(letter)?.record ?? 0, body: 0 });
            }
          }
          ledger.add(name, String(index), { record, body: keeps ? body : 0 });
          kept.get(name)?.set(String(index), { record, body: keeps ? body : 0 });
        }
        const bytes = names.map((name) =>
          [...(kept.get(name)?.values() ?? [])].reduce((sum, it) => sum + it.record + it.body, 0),
        );
        for (const [index, name] of names.entries()) {
          const { maxCount = 0, maxBytes = 0 } = bounds[index] ?? {};
          expect(ledger.stock(name)).toMatchObject({ count: kept.get(name)?.size, bytes: bytes[index] });
          expect(ledger.stock(name).count).toBeLessThanOrEqual(maxCount);
          expect(bytes[index]).toBeLessThanOrEqual(maxBytes);
        }
        expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(room);
      },
    ),
  );
});

test("where all together are too much, only the function that has most gives way", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 200 }), (bodies) => {
      const ledger = new DeadLetterStats(() => 300);
      // The modest function has less than its share, whatever the greedy one does.
      ledger.admit("modest", { record: 1, body: 49 });
      ledger.add("modest", "0", { record: 1, body: 49 });
      for (const [index, body] of bodies.entries()) {
        const size = { record: 1, body };
        const keeps = ledger.admit("greedy", size);
        ledger.add("greedy", String(index + 1), keeps ? size : { ...size, body: 0 });
        expect(ledger.cuts().map((cut) => cut.function)).not.toContain("modest");
      }
      expect(ledger.stock("modest")).toMatchObject({ count: 1, withoutBody: 0 });
    }),
  );
});
