import { cut } from "../../base/wording.ts";
import { type FunctionDispatch, mostReported, type ObjectReport } from "../../engine/function-dispatch.ts";
import type { FilteredEvent, PastRun } from "../../engine/history/history.ts";
import type { SourceStatus } from "../../informer/fanout/observer.ts";
import type { SourceSpec } from "../../informer/fanout/source-spec.ts";
import type { DeadLetterSummary } from "../../journal/batch.ts";
import { type DeadLetterPage, deadLetterPageSize } from "../../journal/checkpoint.ts";
import type { Schedule, Trigger } from "../../manifest/function.ts";
import type { ExplainQuestion, Explanation, TriggerExplanation } from "../../observe/explanation.ts";
import { answerOf, nextOf, type ObjectFacts } from "./answer.ts";
import { checksOf } from "./checks.ts";
import { type LiveObject, type LookParts, lookAt } from "./live-look.ts";
import { explainSchedule } from "./schedule.ts";
import { because } from "./words.ts";

/** Maximum characters of a text from elsewhere. */
const longestText = 300;
/** Maximum number of pages of a function's dead letters that are searched. */
const mostPages = 20;

/** Function reasons that concern one source. If it is the object's source, the source check reports it. */
const ofOneSource: ReadonlySet<string> = new Set(["KindMissing", "Degraded", "Unreachable", "CatchingUp"]);

/** Reasons of a shard that does not know the object, or of an object that belongs to another shard. */
const ignorant: readonly TriggerExplanation["reason"][] = ["nothing", "key", "shard"];

/** The function that the question is about. */
export interface ExplainedFunction {
  /** As in `/status`. */
  readonly report: Explanation["function"];
  readonly triggers: readonly Trigger[];
  readonly schedules: readonly Schedule[];
  /** `undefined` if it is not loaded. */
  readonly dispatch: FunctionDispatch | undefined;
  /** Returns the source of a trigger in a namespace; "" means all namespaces. */
  sourceOf(trigger: Trigger, namespace: string): SourceSpec;
  /** Returns that source's status. */
  statusOf(spec: SourceSpec): SourceStatus | undefined;
}

interface ExplainerParts extends LookParts {
  readonly deadLetters: { list(page: DeadLetterPage): Promise<readonly DeadLetterSummary[]> };
  readonly redact: (functionName: string, text: string) => string;
}

/**
 * Explains why a function's handler did not run for an object, or, given a schedule's name, when the schedule ran. Changes
 * nothing.
 */
export async function explain(
  subject: ExplainedFunction,
  question: ExplainQuestion,
  parts: ExplainerParts,
): Promise<Explanation> {
  const { report, dispatch, triggers } = subject;
  const { namespace, name } = question;
  const show = (text: string) => cut(parts.redact(report.name, text), longestText);
  const letters = dispatch ? await lettersOf(question, parts) : [];
  const isStopped = !report.ready && !ofOneSource.has(report.reason ?? "");
  const trouble = isStopped ? show(`${report.reason}: ${report.message}`) : undefined;
  const explained: TriggerExplanation[] = [];
  for (const trigger of dispatch ? triggers : []) {
    if (!dispatch) break;
    const read = trigger.namespaces.type === "all" ? "" : namespace;
    const isRead = (await dispatch.object(trigger.name, question)).position !== undefined;
    const spec = subject.sourceOf(trigger, namespace);
    const live: LiveObject = isRead ? await lookAt({ spec, name }, parts) : notRead;
    const seen = live.type === "there" ? live.change : undefined;
    const facts: ObjectFacts = {
      trigger,
      namespace,
      name,
      live,
      report: await dispatch.object(trigger.name, question, seen),
      source: subject.statusOf(subject.sourceOf(trigger, read)),
      letters: letters.filter((letter) => letter.trigger === trigger.name),
      trouble,
      show,
    };
    explained.push(describe(facts));
  }
  const asked = subject.schedules.filter((schedule) => namespace === "" && schedule.name === name);
  const scheduled = dispatch
    ? asked.map((schedule) => explainSchedule(schedule, dispatch.schedule(schedule.name), trouble, show))
    : [];
  // A question with a schedule's name is about the schedule, and not about an object of another trigger.
  const reports = scheduled.length > 0 ? scheduled : explained;
  return { function: report, object: { namespace, name }, triggers: reports };
}

/** Merges the explanations of several shards, at least one: for each trigger, the first shard that knows the object. */
export function explainShards(shards: readonly Explanation[], elsewhere?: string): Explanation {
  const [first] = shards;
  if (!first) throw new TypeError("no shard is here");
  return {
    ...first,
    triggers: first.triggers.map((trigger, index) => {
      const all = shards.flatMap(({ triggers }) => triggers[index] ?? []);
      const knowing = all.find(({ reason }) => !ignorant.includes(reason));
      const said = knowing ?? all.find(({ reason }) => reason !== "shard") ?? trigger;
      if (said.reason !== "shard" || elsewhere === undefined) return said;
      return { ...said, why: `${said.why}: ${elsewhere}` };
    }),
  };
}

const notRead: LiveObject = { type: "unknown", why: "not looked for: the trigger does not read its namespace" };

/** Returns the object's dead letters, newest first. */
async function lettersOf({ function: name, ...object }: ExplainQuestion, { deadLetters }: ExplainerParts) {
  let found: DeadLetterSummary[] = [];
  let after: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const letters = await deadLetters.list({ function: name, after });
    const own = letters.filter((letter) => letter.namespace === object.namespace && letter.name === object.name);
    found = [...found, ...own].slice(-mostReported);
    after = letters.at(-1)?.letter;
    if (letters.length < deadLetterPageSize) break;
  }
  return found.reverse();
}

function describe(facts: ObjectFacts): TriggerExplanation {
  const { trigger, report, show } = facts;
  const checks = checksOf(facts);
  const next = nextOf(facts);
  return {
    trigger: trigger.name,
    apiVersion: trigger.apiVersion,
    kind: trigger.kind,
    ...answerOf(facts, checks),
    ...(next !== undefined && { next }),
    checks,
    filtered: filteredOf(report, trigger, show),
    runs: report.runs.map((run) => ({
      ...when(run),
      attempt: run.attempt,
      outcome: run.outcome,
      durationMs: run.durationMs,
      ...(run.error !== undefined && { error: show(run.error) }),
    })),
  };
}

const filteredOf = ({ filtered }: ObjectReport, trigger: Trigger, show: ObjectFacts["show"]) =>
  filtered.map((event) => ({ ...when(event), because: because(event.why, event.type, trigger, show) }));

const when = ({ at, type, resourceVersion }: FilteredEvent | PastRun) => ({
  at: new Date(at).toISOString(),
  type,
  resourceVersion,
});
