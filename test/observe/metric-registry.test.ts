import fc from "fast-check";
import { expect, it } from "vitest";
import { Counter } from "../../runtime/observe/counter.ts";
import { Histogram } from "../../runtime/observe/histogram.ts";
import { MetricRegistry } from "../../runtime/observe/metric-registry.ts";

/** Unescapes a label's value as a Prometheus server does. */
const unescaped = (text: string): string => text.replace(/\\(.)/g, (_, each: string) => (each === "n" ? "\n" : each));

it("a tally shows in every text all that was counted until then, under the labels it was counted with", async () => {
  const page = new MetricRegistry();
  const tally = page.add(new Counter({ name: "n", help: "h", labelNames: ["function", "trigger"] }));
  tally.add(1, "copy", "copy");
  tally.add(2, "copy", "other");
  tally.add(3, "copy", "copy");
  await page.text();
  tally.add(10, "copy", "copy");
  const text = await page.text();
  expect(text).toContain('n{function="copy",trigger="copy"} 14\n');
  expect(text).toContain('n{function="copy",trigger="other"} 2\n');
  expect(await page.text()).toBe(text);
});

it("what has no labels is shown before anything is counted", async () => {
  const page = new MetricRegistry();
  page.add(new Counter({ name: "n", help: "h", labelNames: [] }));
  page.add(new Histogram({ name: "s", help: "h", labelNames: [], bounds: [1] }));
  const lines = (await page.text()).split("\n");
  expect(lines).toEqual(expect.arrayContaining(["n 0", 's_bucket{le="1"} 0', 's_bucket{le="+Inf"} 0', "s_count 0"]));
});

it("a label's value is read back as it was, whatever it holds", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: fc.constantFrom("a", "\\", '"', "\n", "}", ",", "é") }), async (value) => {
      const page = new MetricRegistry();
      page.add(new Counter({ name: "n", help: "h", labelNames: ["l"] })).add(1, value);
      const [, shown = ""] = /^n\{l="(.*)"\} 1$/m.exec(await page.text()) ?? [];
      expect(unescaped(shown)).toBe(value);
    }),
  );
});

it("a histogram counts each value in every bucket whose bound it does not exceed", async () => {
  const bounds = [0.5, 1, 2];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(0.1, 0.5, 0.7, 1, 1.5, 2, 9)), async (values) => {
      const page = new MetricRegistry();
      const spread = page.add(new Histogram({ name: "s", help: "h", labelNames: ["l"], bounds }));
      spread.observe(0, "x");
      for (const value of values) spread.observe(value, "x");
      const text = await page.text();
      for (const bound of [...bounds, Number.POSITIVE_INFINITY]) {
        const le = bound === Number.POSITIVE_INFINITY ? "+Inf" : bound;
        const within = 1 + values.filter((value) => value <= bound).length;
        expect(text).toContain(`s_bucket{le="${le}",l="x"} ${within}\n`);
      }
      expect(text).toContain(`s_count{l="x"} ${1 + values.length}\n`);
      const [, sum] = /^s_sum\{l="x"\} (.*)$/m.exec(text) ?? [];
      expect(Number(sum)).toBeCloseTo(values.reduce((all, value) => all + value, 0));
    }),
  );
});

it("a text of many series does not keep the loop from other work, and shows each of them once", async () => {
  const page = new MetricRegistry();
  const tally = page.add(new Counter({ name: "n", help: "h", labelNames: ["l"] }));
  const names = Array.from({ length: 20_000 }, (_, index) => `series-${index}`);
  for (const name of names) tally.add(1, name);
  let turns = 0;
  const count = () => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const text = await page.text();
  clearImmediate(next);
  expect(turns).toBeGreaterThan(5);
  expect([...text.matchAll(/^n\{l="(.*)"\} 1$/gm)].map(([, name]) => name)).toEqual(names);
});
