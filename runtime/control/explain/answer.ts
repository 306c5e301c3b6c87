import type { ObjectReport } from "../../engine/function-dispatch.ts";
import type { SourceStatus } from "../../informer/fanout/observer.ts";
import type { DeadLetterSummary } from "../../journal/batch.ts";
import type { Trigger } from "../../manifest/function.ts";
import type { Check, TriggerExplanation, Why } from "../../observe/explanation.ts";
import type { LiveObject } from "./live-look.ts";
import { because, isNobody, wokenBy } from "./words.ts";

/** The known facts about one object under one trigger. */
export interface ObjectFacts {
  readonly trigger: Trigger;
  readonly namespace: string;
  readonly name: string;
  readonly live: LiveObject;
  readonly report: ObjectReport;
  /** Status of the source for the object's namespace; `undefined` without a source. */
  readonly source: SourceStatus | undefined;
  /** The object's dead letters, newest first. */
  readonly letters: readonly DeadLetterSummary[];
  /** Why the function does not run as it should, unless the cause concerns one source; else `undefined`. */
  readonly trouble: string | undefined;
  /** Prepares a text for display: cuts it and redacts the function's secrets. */
  readonly show: (text: string) => string;
}

/** Checks whose failure keeps away every event of the object, whatever it contains. */
const barriers = ["shard", "namespace", "source", "labelSelector", "fieldSelector", "queue"] as const;

type TriggerAnswer = Pick<TriggerExplanation, "reason" | "why">;

/** Returns the reason why the handler did not run: the check that keeps every event away, else the outcome of the last event. */
export function answerOf(facts: ObjectFacts, checks: readonly Check[]): TriggerAnswer {
  const barred = (name: Why): TriggerAnswer | undefined => {
    const found = checks.find((check) => check.name === name && check.passes === "no");
    return found && { reason: name, why: `${labels[name] ?? name}: ${found.says}` };
  };
  const [shard, namespace, source, ...rest] = barriers.map(barred);
  const stopped = facts.trouble === undefined ? undefined : ({ reason: "function", why: facts.trouble } as const);
  return (
    shard ??
    namespace ??
    source ??
    stopped ??
    rest.find((each) => each !== undefined) ??
    running(facts, checks) ??
    past(facts) ??
    barred("object") ??
    nothing(facts)
  );
}

const labels: { readonly [why in Why]?: string } = {
  shard: "it belongs to a shard of another replica",
  namespace: "its namespace is not read",
  source: "its source does not deliver it",
  labelSelector: "the label selector leaves it out",
  fieldSelector: "the field selector leaves it out",
  queue: "one of its events waits",
  object: "there is no such object",
};

/** The event with which the handler is running now, if any. */
function running({ report }: ObjectFacts, checks: readonly Check[]): TriggerAnswer | undefined {
  if (!report.lane?.running) return undefined;
  return { reason: "fired", why: `it did fire: ${checks.find(({ name }) => name === "queue")?.says}` };
}

/** The outcome of the object's last event; `undefined` if no event is recorded. */
function past({ report, letters, trigger, show }: ObjectFacts): TriggerAnswer | undefined {
  const [filtered] = report.filtered;
  const [run] = report.runs;
  const [letter] = letters;
  const isFiltered = filtered !== undefined && filtered.order > (run?.order ?? -1);
  const last = isFiltered ? filtered : run;
  // The dead letter's attempt is not recorded: it was made before the last restart, or its executor died repeatedly.
  if (letter && letter.failedAt > (last?.at ?? 0)) return givenUp(letter.type, letter.attempts);
  if (isFiltered) {
    const why = because(filtered.why, filtered.type, trigger, show);
    return { reason: filtered.why.type, why: `its ${filtered.type} was filtered: ${why}` };
  }
  if (!run) return undefined;
  if (run.outcome === "ok") return { reason: "fired", why: `it did fire: the handler ended well with its ${run.type}` };
  // No event of the object waits any more.
  return givenUp(run.type, run.attempt);
}

const givenUp = (type: string, attempts: number): TriggerAnswer => ({
  reason: "givenUp",
  why: `it did fire: the handler failed with its ${type}, which was given up after attempt ${attempts}`,
});

function nothing({ report, trigger, live, show }: ObjectFacts): TriggerAnswer {
  const refused = report.hasNeverMatched ? report.next?.heldBack : undefined;
  if (live.type === "there" && refused) {
    const why = because(refused, "Modified", trigger, show);
    return { reason: refused.type, why: `it has not met the conditions yet: ${why}` };
  }
  if (live.type === "there" && !report.known) {
    return { reason: "source", why: "the object is there, and its source has not delivered it yet" };
  }
  const skips =
    trigger.initialEvents === "Skip" ? "; objects that existed at the deployment are skipped (initialEvents)" : "";
  return { reason: "nothing", why: `it has had no event since the function was loaded${skips}` };
}

/** Describes the result of an event with the object's current state; `undefined` if such an event is impossible. */
export function nextOf({ report, live, trigger, show }: ObjectFacts): string | undefined {
  const { next, position, wakes, isElsewhere } = report;
  if (isElsewhere || !next || !position || live.type !== "there" || !live.labels || !live.fields) return undefined;
  const event = `${next.type === "Added" ? "an" : "a"} ${next.type} with the object in its current state`;
  const heldBack = next.heldBack ?? (wakes && isNobody(wakes) ? wakes.now.heldBack : undefined);
  if (heldBack) return `${event} is filtered: ${because(heldBack, next.type, trigger, show)}`;
  return wakes ? show(`${event} wakes ${wokenBy(wakes)}`) : `${event} reaches the handler`;
}
