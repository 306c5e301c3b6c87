import { selectorMatches } from "../../api/label-selector.ts";
import { at, equal, type Fields, fieldsOf, isFields, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import type { Traits } from "../resource-type.ts";
import { claimFaults } from "./claim-faults.ts";
import { type FieldRule, named, notNegative, oneOf, ruleFaults } from "./field-rules.ts";
import { templateFaults } from "./pod-faults.ts";
import { defaultPodSpec, defaultText, items, made, otherwise } from "./pod-spec.ts";
import { labelSelectorFaults, negativeFaults, shareFaults } from "./value-faults.ts";

export const templatePath = "spec.template";
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
  ...(at(object, `${templatePath}.spec.activeDeadlineSeconds`) === undefined
    ? []
    : [
        fault.forbidden(
          `${templatePath}.spec.activeDeadlineSeconds`,
          "activeDeadlineSeconds in ReplicaSet is not Supported",
        ),
      ]),
  ...selectorFaults(object, old),
  ...negativeFaults(fieldsOf(object.spec), "spec", "minReadySeconds"),
  ...(object.kind === "StatefulSet" ? [] : negativeFaults(fieldsOf(object.spec), "spec", "revisionHistoryLimit")),
  ...templateFaults(object, templatePath, {
    restart: ["Always"],
    claims: items(fieldsOf(object.spec), "volumeClaimTemplates").map((claim) => at(claim, "metadata.name")),
  }),
];

const isNothing = (share: unknown): boolean => share === 0 || share === "0%";

/** Faults of how a Deployment replaces its pods. */
function strategyFaults(object: KubeObject): FieldFault[] {
  const spec = fieldsOf(object.spec);
  const strategy = fieldsOf(spec.strategy);
  const path = "spec.strategy.rollingUpdate";
  const { maxSurge, maxUnavailable } = fieldsOf(strategy.rollingUpdate);
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

/** Fills in the defaults of a spec's template of pods. */
export function template(spec: Fields): void {
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
    defaultText(strategy, "type", "RollingUpdate");
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

const retention = oneOf(["Retain", "Delete"]);

const statefulRules: readonly FieldRule[] = [
  ["serviceName", named("label")],
  ["updateStrategy.rollingUpdate.partition", notNegative],
  ["ordinals.start", notNegative],
  ["persistentVolumeClaimRetentionPolicy.whenDeleted", retention],
  ["persistentVolumeClaimRetentionPolicy.whenScaled", retention],
  [
    "updateStrategy",
    (value, path) => {
      const { type, rollingUpdate } = fieldsOf(value);
      return type === "OnDelete" && rollingUpdate !== undefined
        ? [fault.invalid(`${path}.rollingUpdate`, rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")]
        : [];
    },
  ],
  // A claim becomes a volume of each pod, after those of the template.
  [
    "volumeClaimTemplates[]",
    (value) => {
      const claim = at(value, "metadata.name");
      const [volume, source] = ["spec.template.spec.volumes[0].name", "persistentVolumeClaim.claimName"];
      if (claim) return named("label")(claim, volume);
      return [fault.required(`spec.template.spec.volumes[0].${source}`), fault.required(volume)];
    },
  ],
];

export const statefulSet: Traits = {
  ...common,
  check: (object, old) => [
    ...workloadFaults(object, old),
    ...ruleFaults(statefulRules, object.spec, "spec"),
    ...(old ? [] : items(fieldsOf(object.spec), "volumeClaimTemplates")).flatMap((claim, index) =>
      claimFaults(claim, `spec.volumeClaimTemplates[${index}].spec`),
    ),
  ],
  scale,
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "replicas", 1);
    defaultText(spec, "podManagementPolicy", "OrderedReady");
    otherwise(spec, "revisionHistoryLimit", 10);
    const strategy = made(spec, "updateStrategy");
    defaultText(strategy, "type", "RollingUpdate");
    if (strategy.type === "RollingUpdate") {
      const rolling = made(strategy, "rollingUpdate");
      otherwise(rolling, "partition", 0);
      // The real server has this field only behind a feature gate.
      delete rolling.maxUnavailable;
    }
    const retention = made(spec, "persistentVolumeClaimRetentionPolicy");
    defaultText(retention, "whenDeleted", "Retain");
    defaultText(retention, "whenScaled", "Retain");
    for (const claim of items(spec, "volumeClaimTemplates")) {
      Object.assign(claim, { apiVersion: "v1", kind: "PersistentVolumeClaim" });
      otherwise(made(claim, "spec"), "volumeMode", "Filesystem");
      // A template has no claim whose status it could give.
      claim.status = { phase: "Pending" };
    }
    template(spec);
    if (!old) object.status = { replicas: 0, availableReplicas: 0 };
  },
};

const templateGeneration = "deprecated.daemonset.template.generation";

/** Counts the templates of a DaemonSet in an annotation, where the real server keeps a field of an older version. */
function countTemplates(object: KubeObject, old: KubeObject | undefined): void {
  const before = old?.metadata.annotations?.[templateGeneration];
  const isChanged = old !== undefined && !equal(at(object, templatePath), at(old, templatePath));
  const given = Number(object.metadata.annotations?.[templateGeneration]);
  const count = old ? Number(before ?? 1) + (isChanged ? 1 : 0) : given >= 1 ? given : 1;
  object.metadata.annotations = { ...object.metadata.annotations, [templateGeneration]: String(count) };
}

/** Faults of how a DaemonSet replaces its pods: either some are missing for a while, or there are more. */
function daemonStrategyFaults(object: KubeObject): FieldFault[] {
  const path = "spec.updateStrategy.rollingUpdate";
  const rolling = at(object, path);
  if (!isFields(rolling) || at(object, "spec.updateStrategy.type") === "OnDelete") return [];
  const { maxSurge, maxUnavailable } = rolling;
  const faults = [
    ...shareFaults(maxUnavailable, `${path}.maxUnavailable`),
    ...shareFaults(maxSurge, `${path}.maxSurge`),
  ];
  const [isNoSurge, isAllAvailable] = [isNothing(maxSurge), isNothing(maxUnavailable)];
  if (isNoSurge && isAllAvailable)
    faults.push(fault.required(`${path}.maxUnavailable`, "cannot be 0 when maxSurge is 0"));
  if (!isNoSurge && !isAllAvailable)
    faults.push(fault.invalid(`${path}.maxSurge`, maxSurge, "may not be set when maxUnavailable is non-zero"));
  return faults;
}

export const daemonSet: Traits = {
  ...common,
  check: (object, old) => [...workloadFaults(object, old), ...daemonStrategyFaults(object)],
  prepare(object, old) {
    const spec = made(object, "spec");
    otherwise(spec, "revisionHistoryLimit", 10);
    const strategy = made(spec, "updateStrategy");
    defaultText(strategy, "type", "RollingUpdate");
    if (strategy.type === "RollingUpdate") {
      const rolling = made(strategy, "rollingUpdate");
      otherwise(rolling, "maxUnavailable", 1);
      otherwise(rolling, "maxSurge", 0);
    }
    template(spec);
    countTemplates(object, old);
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
  check: (object) => [...replicasFaults(object), ...templateFaults(object, templatePath, { restart: ["Always"] })],
};
