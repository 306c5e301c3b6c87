import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { parseSize } from "../../../runtime/manifest/quantity.ts";
import { type Bound, sizeOf } from "./bound.ts";
import type { Constant } from "./constants.ts";
import { bounds, type Defaults } from "./rows.ts";

const chart = (file: string) => readFileSync(join(import.meta.dirname, "../../../deploy/chart", file), "utf8");

const { persistence } = parse(chart("values.yaml")) as { readonly persistence: { readonly size: string } };
const { cacheLimit, resources } = (
  parse(chart("files/sizes.yaml")) as Record<
    "medium",
    { readonly cacheLimit: string; readonly resources: { readonly limits: { readonly memory: string } } }
  >
).medium;

const bytes = (size: string): number => parseSize(size) ?? Number.NaN;

/** The chart's default limits for a runtime. */
export const chartDefaults: Defaults & { readonly cache: number } = {
  memory: bytes(resources.limits.memory),
  volume: bytes(persistence.size),
  cache: bytes(cacheLimit),
};

/** Every bound, with the chart's defaults. */
export const allBounds: readonly Bound[] = bounds(chartDefaults);

const inTotal = (of: "memory" | "disk"): number => allBounds.reduce((sum, bound) => sum + (bound[of] ?? 0), 0);

/** The sum of all bounds that the functions share, in bytes. */
export const total = { memory: inTotal("memory"), disk: inTotal("disk") } as const;

/** The files where a bound is set, with the names of its constants. */
function placesOf(set: readonly Constant[]): string {
  const files = new Map<string, string[]>();
  for (const { file, name } of set) files.set(file, [...(files.get(file) ?? []), ...(name === "*" ? [] : [name])]);
  return [...files].map(([file, names]) => [`\`${file}\``, ...new Set(names)].join(" ")).join(", ");
}

/** The table of bounds, one row each. */
export const boundsTable = (): string =>
  [
    "| what | of a function | of a runtime | beyond it | set in `runtime/` |",
    "| --- | --- | --- | --- | --- |",
    ...allBounds
      .filter(({ beyond }) => beyond !== "")
      .map(
        ({ what, ofFunction, ofRuntime, beyond, set }) =>
          `| ${what} | ${ofFunction} | ${ofRuntime} | ${beyond} | ${placesOf(set)} |`,
      ),
  ].join("\n");

/** The table of bounds that all functions share, with their sizes. */
export const sharesTable = (): string =>
  [
    "| shared by all functions | memory | disk |",
    "| --- | --- | --- |",
    ...allBounds
      .filter(({ memory, disk }) => memory !== undefined || disk !== undefined)
      .map(({ what, memory, disk }) => `| ${what} | ${memory ? sizeOf(memory) : ""} | ${disk ? sizeOf(disk) : ""} |`),
    `| **in all** | **${sizeOf(total.memory)}** of ${sizeOf(chartDefaults.memory)} | **${sizeOf(total.disk)}** of ${sizeOf(chartDefaults.volume)} |`,
  ].join("\n");
