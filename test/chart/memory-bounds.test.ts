import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "../..");
const { cacheLimit, resources } = parse(readFileSync(join(root, "deploy/chart/values.yaml"), "utf8")) as {
  readonly cacheLimit: string;
  readonly resources: { readonly limits: { readonly memory: string } };
};
const mebibytes = (size: string): number => Number(/^(\d+) ?Mi/.exec(size)?.[1]);

/** The bounds that all functions share, in MiB with the chart's defaults, by what they bound. */
function boundsOf(page: string): ReadonlyMap<string, number> {
  const [, table = ""] = page.split("| shared by all functions |");
  const rows = table.split("\n\n", 1)[0]?.split("\n").slice(2) ?? [];
  return new Map(
    rows.map((row) => {
      const [, what = "", , size = ""] = row.split("|").map((cell) => cell.trim());
      return [what, mebibytes(size)] as const;
    }),
  );
}

const bounds = boundsOf(readFileSync(join(root, "runtime/docs/limits.md"), "utf8"));
const memory = mebibytes(resources.limits.memory);

it("what all functions share of the runtime's memory fits the chart's default limit", () => {
  expect(bounds.size).toBeGreaterThan(5);
  const sum = [...bounds.values()].reduce((total, size) => total + size, 0);
  expect(sum).toBeGreaterThan(0);
  expect(sum).toBeLessThanOrEqual(memory);
});

it("and the page names the chart's own defaults", () => {
  expect(bounds.get("objects in `reads`")).toBe(mebibytes(cacheLimit));
  // Node takes half of a container's memory for its heap, and waiting events a quarter of that.
  expect(bounds.get("events that wait")).toBe(memory / 2 / 4);
});
