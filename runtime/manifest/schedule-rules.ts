import { parseDuration } from "@watchfire/sdk";
import { suggest } from "../base/suggest.ts";
import { cronFault, isTimeZone } from "./cron.ts";
import type { RuleFault } from "./rule-fault.ts";

/** Shortest interval, in milliseconds. With a shorter one, a run would begin before the previous one's record is on disk. */
const shortestIntervalMs = 1_000;

const invalid = (path: RuleFault["path"], what: string, hint?: string): RuleFault => ({
  code: "WF_MANIFEST_INVALID_VALUE",
  path,
  what,
  ...(hint !== undefined && { hint }),
});

/** Checks rules between a trigger's `watch` and `schedule`, and within the latter, in a raw document. */
export function* scheduleFaults(trigger: Record<string, unknown>, path: RuleFault["path"]): Generator<RuleFault> {
  const { watch, schedule } = trigger;
  if (watch !== undefined && schedule !== undefined) {
    yield invalid([...path, "schedule"], "watch and schedule exclude each other", "use two triggers");
  }
  if (typeof schedule !== "object" || schedule === null || Array.isArray(schedule)) return;
  yield* fieldFaults(schedule as Record<string, unknown>, [...path, "schedule"]);
}

function* fieldFaults(
  { cron, timeZone, every, jitter }: Record<string, unknown>,
  path: RuleFault["path"],
): Generator<RuleFault> {
  if (cron !== undefined && every !== undefined) {
    yield invalid([...path, "every"], "cron and every exclude each other", "use two triggers");
  }
  if (cron === undefined && every === undefined) {
    yield {
      code: "WF_MANIFEST_MISSING_FIELD",
      path,
      what: "cron or every is missing",
      hint: 'such as `cron: "0 3 * * *"` or `every: 10m`',
    };
  }
  if (timeZone !== undefined && cron === undefined && every !== undefined) {
    yield invalid([...path, "timeZone"], "`every` has no time zone", "leave it out");
  }
  const zone = typeof timeZone === "string" ? timeZone : "UTC";
  if (!isTimeZone(zone)) {
    const near = suggest(zone, Intl.supportedValuesOf("timeZone"));
    const hint = near === undefined ? "such as Europe/Berlin" : `did you mean ${near}?`;
    yield invalid([...path, "timeZone"], "there is no such time zone", hint);
  }
  const fault = typeof cron === "string" && isTimeZone(zone) ? cronFault(cron, zone) : undefined;
  if (fault !== undefined) yield invalid([...path, "cron"], fault, 'such as "0 3 * * *": each day at three');
  const [everyMs, jitterMs] = [every, jitter].map((value) =>
    typeof value === "string" ? parseDuration(value) : undefined,
  );
  if (everyMs !== undefined && everyMs < shortestIntervalMs) {
    yield invalid([...path, "every"], "expected at least 1s");
  }
  if (everyMs !== undefined && jitterMs !== undefined && jitterMs >= everyMs) {
    yield invalid([...path, "jitter"], `jitter (${jitter}) is not less than every (${every})`, "lower jitter");
  }
}
