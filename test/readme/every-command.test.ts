import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandsOf, userPages } from "./blocks.ts";
import { read } from "./sections.ts";

const tests = join(import.meta.dirname, "..");

/** The tests that run a page's commands, which they read from the page. */
const runBy: Readonly<Record<string, string>> = {
  "README.md": "readme/first-function.long.test.ts",
  "deploy/chart/README.md": "readme/deploying.long.test.ts",
  "runtime/docs/building.md": "readme/first-function.long.test.ts",
  "runtime/docs/commands.md": "readme/operating.long.test.ts",
  "runtime/docs/deploying.md": "readme/deploying.long.test.ts",
  "runtime/docs/disaster-recovery.md": "cli/backup.test.ts",
  "runtime/docs/executor-rights.md": "readme/deploying.long.test.ts",
  "runtime/docs/getting-started.md": "npm/getting-started.test.ts",
  "runtime/docs/nats.md": "scenarios/nats-away.long.test.ts",
  "runtime/docs/operating.md": "readme/operating.long.test.ts",
  "runtime/docs/recipes.md": "cli/recipes.long.test.ts",
  "runtime/docs/runbook.md": "readme/deploying.long.test.ts",
  "runtime/docs/security.md": "cli/validate.long.test.ts",
  "runtime/docs/signing.md": "catalog/signing-guide.long.test.ts",
  "runtime/docs/troubleshooting.md": "readme/first-function.long.test.ts",
};

const pages = userPages.filter((page) => commandsOf(page).length > 0);

describe("the commands of the pages", () => {
  it.each(pages)("are run by a test, which reads them from the page: %s", (page) => {
    const file = join(tests, runBy[page] ?? "no test");
    expect(existsSync(file), page).toBe(true);
    expect(readFileSync(file, "utf8")).toContain(page);
  });

  it("are named for no page that has none", () => {
    expect(Object.keys(runBy).toSorted()).toEqual(pages.toSorted());
  });
});

/** Commands of the README other than those of its first function. */
const others = commandsOf("README.md").filter((each) => !/watchfire validate|configmap ada/.test(each));

describe("the README's other commands", () => {
  const guide = commandsOf("runtime/docs/getting-started.md");
  const scripts = Object.keys(JSON.parse(read("package.json")).scripts);
  /** The reason why no test runs the command as it is written; `undefined` if a test does. */
  const reason = (part: string): string | undefined => {
    if (guide.includes(part)) return undefined;
    const [, script = ""] = /^npm (?:run )?([\w:]+)$/.exec(part) ?? [];
    if (script === "ci") return "it made the folder that this runs in";
    return scripts.includes(script) ? "it is a script of package.json, and these tests are a part of it" : "";
  };

  it.each(
    others.flatMap((each) => each.split(" && ")).map((part) => [part, reason(part) ?? "getting started runs it"]),
  )("%s: %s", (_, why) => {
    expect(why).not.toBe("");
  });
});
