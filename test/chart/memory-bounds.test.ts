import { expect, it } from "vitest";
import { boundsOfCode } from "../readme/bounds/constants.ts";
import { otherLimits } from "../readme/bounds/others.ts";
import { allBounds, chartDefaults, total } from "../readme/bounds/table.ts";

const key = ({ file, name }: { readonly file: string; readonly name: string }) => `${file}#${name}`;

it("what all functions share of the runtime's memory fits the chart's default limit", () => {
  expect(total.memory).toBeGreaterThan(0);
  expect(total.memory).toBeLessThanOrEqual(chartDefaults.memory);
});

it("what they share of its disk leaves half of the chart's default volume to known objects", () => {
  expect(total.disk).toBeGreaterThan(0);
  expect(total.disk).toBeLessThanOrEqual(chartDefaults.volume / 2);
});

it("the room for cached objects that is counted is the chart's own default", () => {
  const cached = allBounds.find(({ what }) => what.startsWith("cached objects"));
  expect(cached?.memory).toBe(chartDefaults.cache);
});

it("every bound in the code is in the table, or said to be none of what grows", () => {
  const rows = allBounds.flatMap(({ set }) => set);
  const named = new Set([...rows, ...otherLimits].map(key));
  const whole = rows.filter(({ name }) => name === "*").map(({ file }) => file);
  const missing = boundsOfCode().filter(
    (bound) => !named.has(key(bound)) && !whole.some((file) => bound.file.startsWith(file)),
  );
  expect(missing.map(key)).toEqual([]);
});

it("and no bound is said to be none that the code no longer has", () => {
  const there = new Set(boundsOfCode().map(key));
  expect(otherLimits.map(key).filter((name) => !there.has(name))).toEqual([]);
});

it("every row says what becomes of more, and every bound of all functions has its place", () => {
  for (const { what, ofFunction, ofRuntime, set, memory } of allBounds) {
    expect(
      [what, ofFunction, ofRuntime].every((text) => text !== ""),
      what,
    ).toBe(true);
    if (memory !== undefined && !what.startsWith("the runtime itself")) expect(set.length, what).toBeGreaterThan(0);
  }
});
