import { selectorMatches } from "../../api/label-selector.ts";
import { at, equal, type Fields, fieldsOf, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { scheduleFault } from "../cron-schedule.ts";
import { nameFaults } from "../names.ts";
import { field, type Traits } from "../resource-type.ts";
import { type Check, exactlyOneOf, type FieldRule, ruleFaults } from "./field-rules.ts";
import { policyFaults } from "./job-policies.ts";
import { templateFaults } from "./pod-faults.ts";
import { defaultPodSpec, defaultText, items, made, otherwise } from "./pod-spec.ts";
import { labelSelectorFaults, negativeFaults } from "./value-faults.ts";
import { template, templatePath } from "./workloads.ts";

/** Fills in the defaults of a Job spec. */
function defaultJobSpec(spec: Fields): void {
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
  otherwise(spec, "parallelism", 1);
  otherwise(spec, "backoffLimit", 6);
  otherwise(spec, "completionMode", "NonIndexed");
  otherwise(spec, "suspend", false);
  otherwise(spec, "podReplacementPolicy", isFields(spec.podFailurePolicy) ? "Failed" : "TerminatingOrFailed");
  defaultConditions(spec);
  template(spec);
}

/** A condition of a failed pod is true unless the rule says otherwise. */
function defaultConditions({ podFailurePolicy }: Fields): void {
  for (const rule of items(fieldsOf(podFailurePolicy), "rules"))
    for (const condition of items(rule, "onPodConditions")) defaultText(condition, "status", "True");
}

/** Most pods of an indexed Job that run at once. */
const mostIndexed = 100_000;

function jobFaults(spec: Fields, path: string): FieldFault[] {
  const counts = ["completions", "parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"];
  const { completionMode, completions, parallelism, backoffLimitPerIndex, maxFailedIndexes, successPolicy } = spec;
  const faults = [
    ...negativeFaults(spec, path, ...counts, "backoffLimitPerIndex", "maxFailedIndexes"),
    ...ruleFaults(jobRules, spec, path),
    ...policyFaults(spec, path),
  ];
  if (completionMode === "Indexed") {
    if (completions === undefined)
      faults.push(fault.required(`${path}.completions`, "when completion mode is Indexed"));
    if (Number(parallelism ?? 0) > mostIndexed) {
      const why = `must be less than or equal to ${mostIndexed} when completion mode is Indexed`;
      faults.push(fault.invalid(`${path}.parallelism`, parallelism, why));
    }
  } else
    for (const [name, value] of Object.entries({ backoffLimitPerIndex, maxFailedIndexes, successPolicy }))
      if (value !== undefined) faults.push(fault.invalid(`${path}.${name}`, value, "requires indexed completion mode"));
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined)
    faults.push(fault.required(`${path}.backoffLimitPerIndex`, "when maxFailedIndexes is specified"));
  return faults;
}

/** The longest name of a Job's controller. */
const longestController = 63;

const controllerName: Check = (value, path) => {
  if (typeof value !== "string") return [];
  const slash = value.indexOf("/");
  const [domain, rest] = [value.slice(0, slash), value.slice(slash + 1)];
  if (slash < 1 || rest === "")
    return [fault.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  if (value.length > longestController) return [fault.tooLong(path, longestController)];
  const faults = nameFaults("subdomain", domain).map((text) => fault.invalid(path, domain, text));
  return /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(rest)
    ? faults
    : [
        ...faults,
        fault.invalid(path, rest, "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"),
      ];
};

const jobRules: readonly FieldRule[] = [
  ["completionMode", exactlyOneOf(["NonIndexed", "Indexed"])],
  ["managedBy", controllerName],
];

function restartFaults(object: KubeObject, path: string): FieldFault[] {
  const policy = at(object, path);
  const allowed = ["OnFailure", "Never"];
  return allowed.includes(String(policy)) ? [] : [fault.unsupported(path, policy, allowed)];
}

/** Faults of a selector that the client has set. */
function selectorFaults(object: KubeObject): FieldFault[] {
  const selector = at(object, "spec.selector");
  const labels = at(object, `${templatePath}.metadata.labels`);
  const faults = isFields(selector) ? [] : [fault.required("spec.selector")];
  if (!isFields(selector) || !selectorMatches(selector, labels))
    faults.push(
      fault.invalid(`${templatePath}.metadata.labels`, labels ?? null, "`selector` does not match template `labels`"),
    );
  return faults;
}

export const job: Traits = {
  status: true,
  generation: true,
  categories: ["all"],
  fields: { "status.successful": field("status.succeeded") },
  prepare(object, old) {
    const spec = made(object, "spec");
    defaultJobSpec(spec);
    otherwise(spec, "manualSelector", false);
    if (old) return;
    object.status = {};
    if (spec.manualSelector === true) return;
    const uid = object.metadata.uid;
    const meta = made(made(spec, "template"), "metadata");
    Object.assign(made(meta, "labels"), {
      "batch.kubernetes.io/controller-uid": uid,
      "batch.kubernetes.io/job-name": object.metadata.name,
      "controller-uid": uid,
      "job-name": object.metadata.name,
    });
    const given = isFields(spec.selector) ? spec.selector : {};
    const labels = { ...fieldsOf(given.matchLabels), "batch.kubernetes.io/controller-uid": uid };
    spec.selector = { ...given, matchLabels: labels };
  },
  check(object, old) {
    const faults = [
      ...templateFaults(object, templatePath),
      ...restartFaults(object, `${templatePath}.spec.restartPolicy`),
      ...jobFaults(fieldsOf(object.spec), "spec"),
    ];
    const { selector, manualSelector } = fieldsOf(object.spec);
    const labels = fieldsOf(at(selector, "matchLabels"));
    if (!old && manualSelector === true) faults.push(...selectorFaults(object));
    const expressions = at(selector, "matchExpressions");
    const isOwn = Object.keys(labels).length > 1 || (Array.isArray(expressions) && expressions.length > 0);
    if (!old) faults.push(...labelSelectorFaults(selector, "spec.selector"));
    if (!old && manualSelector !== true && isOwn)
      faults.push(fault.invalid("spec.selector", selector, "`selector` not auto-generated"));
    if (old && !equal(at(object, templatePath), at(old, templatePath)))
      faults.push(fault.invalid(templatePath, at(object, templatePath), "field is immutable"));
    return faults;
  },
};

/** The names of its Jobs, which have 11 characters more, are labels. */
const longestCronJob = 52;

/** The names of zones have capitals, which JavaScript does not compare. */
function isTimeZone(name: string): boolean {
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
    return timeZone === name || timeZone.toLowerCase() !== name.toLowerCase();
  } catch {
    return false;
  }
}

export const cronJob: Traits = {
  status: true,
  generation: true,
  categories: ["all"],
  prepare(object, old) {
    const spec = made(object, "spec");
    defaultText(spec, "concurrencyPolicy", "Allow");
    otherwise(spec, "suspend", false);
    otherwise(spec, "successfulJobsHistoryLimit", 3);
    otherwise(spec, "failedJobsHistoryLimit", 1);
    const inner = made(made(spec, "jobTemplate"), "spec");
    defaultConditions(inner);
    defaultPodSpec(made(made(inner, "template"), "spec"));
    if (!old) object.status = {};
  },
  check(object) {
    const faults = templateFaults(object, "spec.jobTemplate.spec.template");
    const schedule = at(object, "spec.schedule");
    if (typeof schedule !== "string" || schedule === "") faults.push(fault.required("spec.schedule"));
    else {
      const wrong = scheduleFault(schedule);
      if (wrong !== undefined) faults.push(fault.invalid("spec.schedule", schedule, wrong));
    }
    const { name = "" } = object.metadata;
    if (name.length > longestCronJob)
      faults.push(fault.invalid("metadata.name", name, `must be no more than ${longestCronJob} characters`));
    const zone = at(object, "spec.timeZone");
    if (typeof zone === "string" && !isTimeZone(zone))
      faults.push(fault.invalid("spec.timeZone", zone, `unknown time zone ${zone}`));
    const inner = fieldsOf(at(object, "spec.jobTemplate.spec"));
    faults.push(...jobFaults(inner, "spec.jobTemplate.spec"));
    if (inner.selector !== undefined && inner.selector !== null)
      faults.push(fault.invalid("spec.jobTemplate.spec.selector", inner.selector, "`selector` will be auto-generated"));
    if (inner.manualSelector === true)
      faults.push(fault.unsupported("spec.jobTemplate.spec.manualSelector", true, ["nil", "false"]));
    const history = ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    faults.push(...negativeFaults(fieldsOf(object.spec), "spec", ...history));
    return [...faults, ...restartFaults(object, "spec.jobTemplate.spec.template.spec.restartPolicy")];
  },
};
