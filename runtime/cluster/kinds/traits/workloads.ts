import { selectorMatches } from "../../api/label-selector.ts";
import { at, equal, type Fields, fieldsOf, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { scheduleFault } from "../cron-schedule.ts";
import { nameFaults } from "../names.ts";
import { field, type Traits } from "../resource-type.ts";
import { podSpecFaults } from "./pod-faults.ts";
import { defaultPodSpec, items, made, otherwise } from "./pod-spec.ts";
import { choiceFaults, labelSelectorFaults, negativeFaults, shareFaults } from "./value-faults.ts";

const templatePath = "spec.template";
const scale = { spec: "spec.replicas", status: "status.replicas", selector: "spec.selector" };

/** Faults of a workload's selector: it is required, must not be empty, must match the template, and is immutable. */
function selectorFaults(object: KubeObject, old: KubeObject | undefined): FieldFault[] {
  const selector = at(object, "spec.selector");
  const faults: FieldFault[] = [];
  const unfit = labelSelectorFaults(selector, "spec.selector");
  if (unfit.length > 0) return [...unfit, fault.invalid("spec.selector", selector, "invalid label selector")];
  if (!isFields(selector)) faults.push(fault.required("spec.selector"));
  else if (Object.keys(selector).length === 0)
    faults.push(fault.invalid("spec.selector", selector, `empty selector is invalid for ${object.kind.toLowerCase()}`));
  const labels = at(object, `${templatePath}.metadata.labels`);
  if (!isFields(selector) || !selectorMatches(selector, labels))
    faults.push(
      fault.invalid(`${templatePath}.metadata.labels`, labels ?? null, "`selector` does not match template `labels`"),
    );
  if (old && !equal(selector, at(old, "spec.selector")))
    faults.push(fault.invalid("spec.selector", selector, "field is immutable"));
  return faults;
}

function replicasFaults(object: KubeObject): FieldFault[] {
  const replicas = at(object, "spec.replicas");
  return typeof replicas === "number" && replicas < 0
    ? [fault.invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
    : [];
}

const workloadFaults: NonNullable<Traits["check"]> = (object, old) => [
  ...replicasFaults(object),
  ...selectorFaults(object, old),
  ...negativeFaults(fieldsOf(object.spec), "spec", "minReadySeconds", "revisionHistoryLimit"),
  ...podSpecFaults(object, `${templatePath}.spec`, {
    restart: ["Always"],
    claims: items(fieldsOf(object.spec), "volumeClaimTemplates").map((claim) => at(claim, "metadata.name")),
  }),
];

/** Faults of how a Deployment replaces its pods. */
function strategyFaults(object: KubeObject): FieldFault[] {
  const spec = fieldsOf(object.spec);
  const strategy = fieldsOf(spec.strategy);
  const path = "spec.strategy.rollingUpdate";
  const { maxSurge, maxUnavailable } = fieldsOf(strategy.rollingUpdate);
  const isNothing = (share: unknown) => share === 0 || share === "0%";
  const faults = [...shareFaults(maxUnavailable, `${path}.maxUnavailable`)];
  if (typeof maxSurge !== "string" || !maxSurge.endsWith("%"))
    faults.push(...shareFaults(maxSurge, `${path}.maxSurge`));
  if (strategy.type === "Recreate" && strategy.rollingUpdate !== undefined)
    faults.push(fault.forbidden(path, "may not be specified when strategy `type` is 'Recreate'"));
  if (isNothing(maxSurge) && isNothing(maxUnavailable))
    faults.push(fault.invalid(`${path}.maxUnavailable`, maxUnavailable, "may not be 0 when `maxSurge` is 0"));
  const deadline = spec.progressDeadlineSeconds;
  if (typeof deadline === "number" && deadline <= Number(spec.minReadySeconds ?? 0))
    faults.push(fault.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"));
  return faults;
}

function template(spec: Fields): void {
  defaultPodSpec(made(made(spec, "template"), "spec"));
}

const common: Traits = { status: true, generation: true, categories: ["all"], check: workloadFaults };

export const deployment: Traits = {
  ...common,
  check: (object, old) => [...workloadFaults(object, old), ...strategyFaults(object)],
  scale,
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "replicas", 1);
    otherwise(spec, "revisionHistoryLimit", 10);
    otherwise(spec, "progressDeadlineSeconds", 600);
    const strategy = made(spec, "strategy");
    otherwise(strategy, "type", "RollingUpdate");
    if (strategy.type === "RollingUpdate") {
      const rolling = made(strategy, "rollingUpdate");
      otherwise(rolling, "maxUnavailable", "25%");
      otherwise(rolling, "maxSurge", "25%");
    }
    template(spec);
    if (!old) object.status = {};
  },
};

export const replicaSet: Traits = {
  ...common,
  scale,
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "replicas", 1);
    template(spec);
    if (!old) object.status = { replicas: 0 };
  },
};

export const statefulSet: Traits = {
  ...common,
  scale,
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "replicas", 1);
    otherwise(spec, "podManagementPolicy", "OrderedReady");
    otherwise(spec, "revisionHistoryLimit", 10);
    const strategy = made(spec, "updateStrategy");
    otherwise(strategy, "type", "RollingUpdate");
    if (strategy.type === "RollingUpdate") otherwise(made(strategy, "rollingUpdate"), "partition", 0);
    const retention = made(spec, "persistentVolumeClaimRetentionPolicy");
    otherwise(retention, "whenDeleted", "Retain");
    otherwise(retention, "whenScaled", "Retain");
    for (const claim of items(spec, "volumeClaimTemplates")) {
      otherwise(claim, "apiVersion", "v1");
      otherwise(claim, "kind", "PersistentVolumeClaim");
      otherwise(made(claim, "spec"), "volumeMode", "Filesystem");
      otherwise(claim, "status", { phase: "Pending" });
    }
    template(spec);
    if (!old) object.status = { replicas: 0, availableReplicas: 0 };
  },
};

export const daemonSet: Traits = {
  ...common,
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "revisionHistoryLimit", 10);
    const strategy = made(spec, "updateStrategy");
    otherwise(strategy, "type", "RollingUpdate");
    if (strategy.type === "RollingUpdate") {
      const rolling = made(strategy, "rollingUpdate");
      otherwise(rolling, "maxUnavailable", 1);
      otherwise(rolling, "maxSurge", 0);
    }
    template(spec);
    if (!old)
      object.status = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };
  },
};

export const replicationController: Traits = {
  status: true,
  generation: true,
  scale: { ...scale },
  fields: { "status.replicas": (object) => String(at(object, "status.replicas") ?? 0) },
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "replicas", 1);
    template(spec);
    const labels = at(object, `${templatePath}.metadata.labels`);
    otherwise(spec, "selector", labels);
    if (!object.metadata.labels && isFields(labels)) object.metadata.labels = { ...labels } as Record<string, string>;
    if (spec.minReadySeconds === 0) delete spec.minReadySeconds;
    if (!old) object.status = { replicas: 0 };
  },
  check: (object) => [
    ...replicasFaults(object),
    ...podSpecFaults(object, `${templatePath}.spec`, { restart: ["Always"] }),
  ],
};

/** Fills in the defaults of a Job spec. */
function defaultJobSpec(spec: Fields): void {
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
  otherwise(spec, "parallelism", 1);
  otherwise(spec, "backoffLimit", 6);
  otherwise(spec, "completionMode", "NonIndexed");
  otherwise(spec, "suspend", false);
  otherwise(spec, "podReplacementPolicy", "TerminatingOrFailed");
  template(spec);
}

function jobFaults(spec: Fields, path: string): FieldFault[] {
  const counts = ["completions", "parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"];
  const faults = negativeFaults(spec, path, ...counts);
  if (spec.completionMode === "Indexed" && spec.completions === undefined)
    faults.push(fault.required(`${path}.completions`, "when completion mode is Indexed"));
  return faults;
}

function restartFaults(object: KubeObject, path: string): FieldFault[] {
  const policy = at(object, path);
  const allowed = ["OnFailure", "Never"];
  return allowed.includes(String(policy)) ? [] : [fault.unsupported(path, policy, allowed)];
}

export const job: Traits = {
  status: true,
  generation: true,
  categories: ["all"],
  fields: { "status.successful": field("status.succeeded") },
  prepare(object, old) {
    const spec = made(object, "spec");
    defaultJobSpec(spec);
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
      ...podSpecFaults(object, `${templatePath}.spec`),
      ...restartFaults(object, `${templatePath}.spec.restartPolicy`),
      ...jobFaults(fieldsOf(object.spec), "spec"),
    ];
    const { selector, manualSelector } = fieldsOf(object.spec);
    const labels = fieldsOf(at(selector, "matchLabels"));
    if (!old && manualSelector !== true && Object.keys(labels).length > 1)
      faults.push(fault.invalid("spec.selector", selector, "`selector` not auto-generated"));
    if (old && !equal(at(object, templatePath), at(old, templatePath)))
      faults.push(fault.invalid(templatePath, at(object, templatePath), "field is immutable"));
    return faults;
  },
};

/** The names of its Jobs, which have 11 characters more, are labels. */
const longestCronJob = 52;

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
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
    otherwise(spec, "concurrencyPolicy", "Allow");
    otherwise(spec, "suspend", false);
    otherwise(spec, "successfulJobsHistoryLimit", 3);
    otherwise(spec, "failedJobsHistoryLimit", 1);
    defaultPodSpec(made(made(made(made(spec, "jobTemplate"), "spec"), "template"), "spec"));
    if (!old) object.status = {};
  },
  check(object) {
    const faults = podSpecFaults(object, "spec.jobTemplate.spec.template.spec");
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
    faults.push(...jobFaults(fieldsOf(at(object, "spec.jobTemplate.spec")), "spec.jobTemplate.spec"));
    const history = ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    faults.push(...negativeFaults(fieldsOf(object.spec), "spec", ...history));
    return [...faults, ...restartFaults(object, "spec.jobTemplate.spec.template.spec.restartPolicy")];
  },
};

const pathTypes = ["Exact", "ImplementationSpecific", "Prefix"];

function stepFaults(path: string, where: string): FieldFault[] {
  const within = ["//", "/./", "/../", "%2f", "%2F"].filter((steps) => path.includes(steps));
  const atEnd = ["/..", "/."].filter((steps) => path.endsWith(steps));
  return [
    ...within.map((steps) => fault.invalid(where, path, `must not contain '${steps}'`)),
    ...atEnd.map((steps) => fault.invalid(where, path, `cannot end with '${steps}'`)),
  ];
}

function backendFaults({ service, resource }: Fields, where: string): FieldFault[] {
  if (!isFields(service))
    return isFields(resource) ? [] : [fault.invalid(where, "", "resource or service backend is required")];
  if (!service.name) return [fault.required(`${where}.service.name`)];
  const { name, number } = fieldsOf(service.port);
  return name || number ? [] : [fault.required(where, "port name or number is required")];
}

function pathFaults(path: Fields, where: string): FieldFault[] {
  if (!path.pathType) return [fault.required(`${where}.pathType`, "pathType must be specified")];
  const isAbsolute = typeof path.path === "string" && path.path.startsWith("/");
  const mayBeEmpty = path.pathType === "ImplementationSpecific" && !path.path;
  return [
    ...choiceFaults(path, where, "pathType", pathTypes),
    ...backendFaults(fieldsOf(path.backend), `${where}.backend`),
    ...(path.pathType === "ImplementationSpecific" ? [] : stepFaults(String(path.path), `${where}.path`)),
    ...(isAbsolute || mayBeEmpty ? [] : [fault.invalid(`${where}.path`, path.path ?? "", "must be an absolute path")]),
  ];
}

export const ingress: Traits = {
  status: true,
  generation: true,
  prepare(object, old) {
    if (!old) object.status = { loadBalancer: {} };
  },
  check(object) {
    const spec = fieldsOf(object.spec);
    const rules = items(spec, "rules");
    if (rules.length === 0 && !isFields(spec.defaultBackend))
      return [fault.invalid("spec", null, "either `defaultBackend` or `rules` must be specified")];
    return rules.flatMap((rule, index) => [
      ...(typeof rule.host === "string" && rule.host !== ""
        ? nameFaults("subdomain", rule.host.replace(/^\*\./, "")).map((text) =>
            fault.invalid(`spec.rules[${index}].host`, rule.host, text),
          )
        : []),
      ...items(fieldsOf(rule.http), "paths").flatMap((path, place) =>
        pathFaults(path, `spec.rules[${index}].http.paths[${place}]`),
      ),
    ]);
  },
};
