import { expect, test } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { SourceState } from "../../runtime/informer/fanout/observer.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { notServedYet, sourceLog } from "../../runtime/observe/source-log.ts";

const spec = { apiVersion: "v1", kind: "ConfigMap" };

/** The lines at the default log level for a source that goes through these states. */
function told(...states: readonly SourceState[]) {
  const lines: Record<string, unknown>[] = [];
  const changed = sourceLog(createLog("info", { write: (line: string) => void lines.push(JSON.parse(line)) }));
  states.forEach((to, index) => {
    changed(spec, { from: states[index - 1] ?? "discovering", to, attempt: 1, delayMs: 1234.5678 });
  });
  return lines.map(({ level, msg, to, source, delayMs }) => ({ level, msg, to, source, delayMs }));
}

test("what is wrong with a source is a warning, and its end is told once", () => {
  const line = { source: "v1/ConfigMap", delayMs: 1235 };
  expect(told("listing", "missing", "discovering", "listing", "watching", "listing", "watching")).toEqual([
    { ...line, level: "warn", msg: "source state", to: "missing" },
    { ...line, level: "info", msg: "source recovered", to: "watching" },
  ]);
});

test("that a kind is not there yet when its source begins is no warning, and told once, as its coming is", () => {
  const line = { source: "v1/ConfigMap", delayMs: 1235, level: "info" };
  expect(told("discovering", "missing", "missing", "discovering", "listing", "watching", "missing")).toEqual([
    { ...line, msg: notServedYet, to: "missing" },
    { ...line, msg: "source recovered", to: "watching" },
    { ...line, level: "warn", msg: "source state", to: "missing" },
  ]);
});

test("that resourceVersions went back is a warning, although the source goes on at once", () => {
  const lines: Record<string, unknown>[] = [];
  const changed = sourceLog(createLog("info", { write: (line: string) => void lines.push(JSON.parse(line)) }));
  const message = "the server's resourceVersions went back";
  changed(spec, {
    from: "watching",
    to: "listing",
    attempt: 0,
    cause: "rewind",
    message,
    resourceVersion: resourceVersion("900"),
  });
  changed(spec, { from: "listing", to: "listing", attempt: 0 });
  expect(lines).toEqual([
    expect.objectContaining({
      level: "warn",
      cause: "rewind",
      message,
      resourceVersion: resourceVersion("900"),
      msg: "source state",
    }),
  ]);
});

test("a source that is well is nothing to tell of, nor one that is given up", () => {
  expect(told("discovering", "listing", "watching", "stopped")).toEqual([]);
  expect(told("forbidden", "stopped", "discovering", "watching").map(({ msg }) => msg)).toEqual(["source state"]);
});
