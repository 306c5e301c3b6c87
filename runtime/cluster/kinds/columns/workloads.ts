import { at, type KubeObject } from "../../api/object.ts";
import { age, since } from "../age.ts";
import type { Column } from "../resource-type.ts";
import {
  ageColumn,
  containers,
  count,
  list,
  name,
  number,
  pairs,
  selectorColumn,
  shown,
  string,
  text,
} from "./cells.ts";

const template = containers("spec.template.spec.containers");
const selects = selectorColumn("spec.selector");
const ready = text("Ready", (object) => `${number(object, "status.readyReplicas")}/${number(object, "spec.replicas")}`);

export const deployment: Column[] = [
  name,
  ready,
  text("Up-to-date", (object) => String(number(object, "status.updatedReplicas"))),
  text("Available", (object) => String(number(object, "status.availableReplicas"))),
  ageColumn,
  ...template,
  selects,
];

export const statefulSet: Column[] = [name, ready, ageColumn, ...template];

export const daemonSet: Column[] = [
  name,
  count("Desired", "status.desiredNumberScheduled"),
  count("Current", "status.currentNumberScheduled"),
  count("Ready", "status.numberReady"),
  count("Up-to-date", "status.updatedNumberScheduled"),
  count("Available", "status.numberAvailable"),
  text("Node Selector", (object) => pairs(at(object, "spec.template.spec.nodeSelector"))),
  ageColumn,
  ...template,
  selects,
];

export const replicaSet: Column[] = [
  name,
  count("Desired", "spec.replicas"),
  count("Current", "status.replicas"),
  count("Ready", "status.readyReplicas"),
  ageColumn,
  ...template,
  selects,
];

function jobStatus(object: KubeObject): string {
  const is = (type: string) =>
    list(object, "status.conditions").some((one) => string(one, "type") === type && string(one, "status") === "True");
  if (is("Complete")) return "Complete";
  if (is("Failed")) return "Failed";
  if (object.metadata.deletionTimestamp) return "Terminating";
  if (is("Suspended")) return "Suspended";
  return is("FailureTarget") ? "FailureTarget" : is("SuccessCriteriaMet") ? "SuccessCriteriaMet" : "Running";
}

function jobDuration(object: KubeObject, now: number): string {
  const start = Date.parse(string(object, "status.startTime"));
  if (Number.isNaN(start)) return "";
  const end = Date.parse(string(object, "status.completionTime"));
  return age((Number.isNaN(end) ? now : end) - start);
}

export const job: Column[] = [
  name,
  text("Status", jobStatus),
  text("Completions", (object) => {
    const done = number(object, "status.succeeded");
    const wanted = at(object, "spec.completions");
    if (typeof wanted === "number") return `${done}/${wanted}`;
    const parallel = number(object, "spec.parallelism");
    return parallel > 1 ? `${done}/1 of ${parallel}` : `${done}/1`;
  }),
  text("Duration", jobDuration),
  ageColumn,
  ...template,
  selects,
];

export const cronJob: Column[] = [
  name,
  text("Schedule", (object) => string(object, "spec.schedule")),
  shown("Timezone", "spec.timeZone"),
  { name: "Suspend", type: "boolean", cell: (object) => at(object, "spec.suspend") === true },
  { name: "Active", type: "integer", cell: (object) => list(object, "status.active").length },
  text("Last Schedule", (object, now) => {
    const last = at(object, "status.lastScheduleTime");
    return last ? since(last, now) : "<none>";
  }),
  ageColumn,
  ...containers("spec.jobTemplate.spec.template.spec.containers"),
  selectorColumn("spec.jobTemplate.spec.selector"),
];
