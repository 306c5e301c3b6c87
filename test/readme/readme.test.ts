import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { errorCodes } from "../../runtime/errors.ts";
import { readme, refreshed } from "./sections.ts";

const root = resolve(import.meta.dirname, "../..");

describe("the README", () => {
  it("tells the commands and the errors as the code has them; `npm run readme` makes it so", () => {
    expect(readme()).toBe(refreshed(readme()));
  });

  it("links to files that are there", () => {
    const targets = [...readme().matchAll(/\]\(([^)#:]+)\)/g)].map(([, target]) => target ?? "");
    expect(targets.filter((target) => globSync(target.replace(/\/$/, ""), { cwd: root }).length === 0)).toEqual([]);
  });
});

describe("the registry of errors", () => {
  const sources = globSync("runtime/**/*.{ts,js}", { cwd: root, exclude: (name) => name === "node_modules" })
    .filter((file) => file !== "runtime/errors.ts")
    .map((file) => readFileSync(resolve(root, file), "utf8"))
    .join("\n");

  it("has no code that nothing raises", () => {
    expect(Object.keys(errorCodes).filter((code) => !sources.includes(code))).toEqual([]);
  });

  it("has every code that is raised", () => {
    const used = new Set(sources.match(/\bWF_[A-Z]+_[A-Z_]+\b/g));
    expect([...used].filter((code) => !Object.hasOwn(errorCodes, code))).toEqual([]);
  });
});
