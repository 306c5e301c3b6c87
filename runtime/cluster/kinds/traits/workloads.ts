import { selectorMatches } from "../../api/label-selector.ts";
import { at, equal, type Fields, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { field, type Traits } from "../resource-type.ts";
import { defaultPodSpec, items, made, otherwise, podSpecFaults } from "./pod-spec.ts";

const templatePath = "spec.template";
const scale = { spec: "spec.replicas", status: "status.replicas", selector: "spec.selector" };

/** Faults of a workload's selector: it is required, must not be empty, must match the template, and is immutable. */
function selectorFaults(object: KubeObject, old: KubeObject | undefined): FieldFault[] {
  const selector = at(object, "spec.selector");
  const faults: FieldFault[] = [];
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
  ...podSpecFaults(object, `${templatePath}.spec`),
];

function template(spec: Fields): void {
  defaultPodSpec(made(made(spec, "template"), "spec"));
}

const common: Traits = { status: true, generation: true, categories: ["all"], check: workloadFaults };

export const deployment: Traits = {
  ...common,
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
  fields: { "status.replicas": (object) => String(at(object, "status.replicas") ?? 0) },
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
    otherwise(spec, "selector", at(object, `${templatePath}.metadata.labels`));
    if (!old) object.status = { replicas: 0 };
  },
  check: (object) => [...replicasFaults(object), ...podSpecFaults(object, `${templatePath}.spec`)],
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
    spec.selector = { matchLabels: { "batch.kubernetes.io/controller-uid": uid } };
  },
  check(object, old) {
    const faults = [
      ...podSpecFaults(object, `${templatePath}.spec`),
      ...restartFaults(object, `${templatePath}.spec.restartPolicy`),
    ];
    if (old && !equal(at(object, templatePath), at(old, templatePath)))
      faults.push(fault.invalid(templatePath, at(object, templatePath), "field is immutable"));
    return faults;
  },
};

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
    return [...faults, ...restartFaults(object, "spec.jobTemplate.spec.template.spec.restartPolicy")];
  },
};

export const ingress: Traits = {
  status: true,
  generation: true,
  prepare(object, old) {
    const spec = made(object, "spec");
    for (const rule of items(spec, "rules"))
      for (const path of items(isFields(rule.http) ? rule.http : {}, "paths"))
        otherwise(path, "pathType", "ImplementationSpecific");
    if (!old) object.status = { loadBalancer: {} };
  },
};
