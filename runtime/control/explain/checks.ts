import { cut } from "../../base/wording.ts";
import type { ConditionAnswer } from "../../engine/filter/conditions.ts";
import type { LaneReport } from "../../engine/work/event-lane.ts";
import { requiredName } from "../../kube/field-selector.ts";
import type { Check } from "../../observe/explanation.ts";
import type { ObjectFacts } from "./answer.ts";
import { because, fieldsOf, isNobody, wokenBy } from "./words.ts";

/** Returns the result of every rule that an event of the object has to pass, in the order in which they are applied. */
export function checksOf(facts: ObjectFacts): Check[] {
  return [
    ...shard(facts),
    check("namespace", ...namespace(facts)),
    check("source", ...source(facts)),
    check("object", ...object(facts)),
    check("labelSelector", ...labelSelector(facts)),
    check("fieldSelector", ...fieldSelector(facts)),
    check("events", ...events(facts)),
    check("changedFields", ...changedFields(facts)),
    ...conditions(facts),
    ...key(facts),
    check("queue", ...lane(facts)),
    check("deadLetters", ...deadLetters(facts)),
  ];
}

type CheckAnswer = readonly [passes: Check["passes"], says: string];

const check = (name: string, passes: Check["passes"], says: string): Check => ({ name, passes, says });

/** Only for functions with shards. */
function shard({ report: { isElsewhere } }: ObjectFacts): Check[] {
  if (isElsewhere === undefined) return [];
  if (isElsewhere) return [check("shard", "no", "another shard of the function has the object")];
  return [check("shard", "yes", "this one has the object")];
}

function namespace({ trigger: { namespaces }, namespace, report, live }: ObjectFacts): CheckAnswer {
  if (live.type === "misnamed") return ["no", live.why];
  if (namespace === "" && namespaces.type === "all") return ["yes", "the object has no namespace"];
  switch (namespaces.type) {
    case "all":
      return ["yes", "the trigger reads all namespaces"];
    case "names":
      if (report.position) return ["yes", `the trigger reads ${namespace}`];
      return ["no", `the trigger reads only ${namespaces.names.join(", ")}`];
    case "labels":
      if (report.position) return ["yes", `the labels of ${namespace} match ${namespaces.labelSelector}`];
      return ["no", `${namespace} is not among the namespaces whose labels match ${namespaces.labelSelector}`];
  }
}

function source({ source: status, report: { position }, show }: ObjectFacts): CheckAnswer {
  if (!position) return ["unknown", "no source of the trigger has the object"];
  const { state, message } = status ?? { state: "starting", message: undefined };
  if (state !== "watching" && state !== "listing" && message) return ["no", show(`${state}: ${message}`)];
  if (!position.ready) return ["no", `${state}: its first list is not done`];
  const { lowWaterMark } = position;
  return ["yes", `${state}${lowWaterMark === undefined ? "" : `; all is done up to ${lowWaterMark}`}`];
}

function object({ live, report: { known }, show }: ObjectFacts): CheckAnswer {
  const told = !known ? "the trigger has not seen it" : `the trigger knows it at ${known.resourceVersion}`;
  switch (live.type) {
    case "there": {
      const { resourceVersion } = live.change.meta;
      return ["yes", `there, at ${resourceVersion}; ${known?.deleted ? "the trigger knows it as deleted" : told}`];
    }
    case "gone":
      if (!known) return ["no", "there is no object of this name, and the trigger has not seen one"];
      return [
        "no",
        `gone; the trigger knows ${known.deleted ? "that" : "it as there still"}, at ${known.resourceVersion}`,
      ];
    case "misnamed":
      return ["unknown", "not looked for"];
    case "unknown":
      return ["unknown", show(live.why)];
  }
}

function labelSelector({ trigger, live, show }: ObjectFacts): CheckAnswer {
  if (trigger.labelSelector === "") return ["yes", "none"];
  if (live.type !== "there") return ["unknown", trigger.labelSelector];
  if (live.labels) return ["yes", trigger.labelSelector];
  return ["no", show(`${trigger.labelSelector}, but the object's labels are: ${labelsOf(live.change.body)}`)];
}

function labelsOf(body: Buffer): string {
  const { metadata } = JSON.parse(body.toString()) as { metadata?: { labels?: Record<string, string> } };
  const labels = Object.entries(metadata?.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return labels.join(", ") || "none";
}

function fieldSelector({ trigger: { fieldSelector: selector }, name, live }: ObjectFacts): CheckAnswer {
  const only = requiredName(selector);
  if (only !== undefined && only !== name) return ["no", `${selector} leaves it out`];
  if (live.type !== "there") return [selector === "" ? "yes" : "unknown", selector || "none"];
  if (live.fields) return ["yes", selector || "none"];
  return ["no", selector === "" ? "functions cannot read the runtime's Secrets" : `${selector} leaves it out`];
}

function events({ trigger, report: { next } }: ObjectFacts): CheckAnswer {
  const all = trigger.events.join(", ");
  if (!next) return ["unknown", all];
  return trigger.events.includes(next.type)
    ? ["yes", `${next.type} is among ${all}`]
    : ["no", `${next.type} is not among ${all}`];
}

function changedFields({ trigger, report: { next } }: ObjectFacts): CheckAnswer {
  if (trigger.changedFields.length === 0) return ["yes", "empty: any change counts"];
  const fields = fieldsOf(trigger);
  if (!next || next.heldBack?.type === "events") return ["unknown", fields];
  if (next.heldBack?.type === "changedFields") return ["no", `all are equal to the known state: ${fields}`];
  return ["yes", next.type === "Modified" ? `at least one differs: ${fields}` : `applies only to Modified: ${fields}`];
}

/** Maximum characters of an expression that are shown. */
const longestExpression = 120;

function conditions(facts: ObjectFacts): Check[] {
  const { trigger, report } = facts;
  return trigger.matchConditions.map(({ name, expression }) => {
    const given = report.next?.answers.find(({ condition }) => condition === name);
    const [passes, says] = given ? answer(given, facts) : (["unknown", "not asked"] as const);
    return check(`condition ${name}`, passes, `${says}; ${cut(expression.replace(/\s+/g, " "), longestExpression)}`);
  });
}

function answer({ answer: given }: ConditionAnswer, { report, show }: ObjectFacts): CheckAnswer {
  switch (given.type) {
    case "holds":
      return ["yes", "true"];
    case "fails":
      return ["no", "false"];
    case "unknown":
      return ["yes", "counts as true: the state before is not known"];
    case "limit":
      return ["yes", `counts as true: ${show(given.message)}`];
    case "error":
      return [report.next?.heldBack ? "no" : "yes", `no value: ${show(given.message)}`];
  }
}

function key({ trigger, report: { wakes, next }, show }: ObjectFacts): Check[] {
  if (!trigger.key) return [];
  if (!wakes) return [check("key", "unknown", "not asked")];
  if (isNobody(wakes))
    return [check("key", "no", because(wakes.now.heldBack, next?.type ?? "Modified", trigger, show))];
  return [check("key", "yes", show(`it wakes ${wokenBy(wakes)}`))];
}

function lane({ report: { lane: found, waits }, trigger }: ObjectFacts): CheckAnswer {
  if (found) return waiting(found, trigger.name);
  return waits ? ["no", "its events wait on disk for their turn"] : ["yes", "it has no waiting events"];
}

function waiting({ waiting: count, head, ...it }: LaneReport, trigger: string): CheckAnswer {
  const of = head.trigger === trigger ? "" : ` of the trigger ${head.trigger}`;
  const first = `its ${head.type}${of}`;
  const more = count > 1 ? `, with ${count - 1} more behind it` : "";
  if (it.running) return ["yes", `${first} is with the handler, attempt ${Math.max(1, head.attempts)}${more}`];
  if (it.held) return ["no", `${first} waits: the function begins no attempt at present${more}`];
  if (it.blocked)
    return [
      "no",
      `${first} failed in attempt ${head.attempts} and blocks the object's queue, as onFailure asks${more}`,
    ];
  if (it.requeued) return ["no", `${first} waits: its handler asked by requeueAfter to be run again later${more}`];
  if (it.retrying && head.attempts === 0)
    return ["no", `${first} waits a while, since an attempt before it failed or was cut off${more}`];
  if (it.retrying) return ["no", `${first} failed in attempt ${head.attempts} and waits for the next${more}`];
  return ["no", `${first} waits for its turn${more}`];
}

function deadLetters({ letters, show }: ObjectFacts): CheckAnswer {
  const [last] = letters;
  if (!last) return ["yes", "it has no dead letters"];
  const { letter, type, attempts, error, failedAt } = last;
  const when = new Date(failedAt).toISOString();
  const failed = `${error.code ?? error.name}: ${error.message.split("\n", 1)[0]}`;
  return ["no", show(`${type}, given up at ${when} after attempt ${attempts}: dead-letters show ${letter}; ${failed}`)];
}
