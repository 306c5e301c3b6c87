import type { Dice } from "../random.ts";
import {
  fieldSelectors,
  fields,
  keyRules,
  labelSelectors,
  maybe,
  metadataConditions,
  namespaceSelectors,
  wholeConditions,
} from "./choices.ts";
import {
  kinds,
  ownerKind,
  type Spec,
  secondTrigger,
  type TriggerSpec,
  versions,
  type WatchSpec,
  watches,
} from "./spec.ts";

/**
 * The deliveries that an edit may cause by itself, where nothing changes in the cluster. `nothing`: no delivery.
 * `selection`: objects that the manifest begins or ceases to select. `other`: further runs or events, which other laws judge.
 */
export type Tells = "nothing" | "selection" | "other";

/** One kind of edit. */
export interface Edit {
  readonly name: string;
  readonly tells: Tells;
  /** The fields of the schema that it changes. */
  readonly paths: readonly string[];
  /** Changes a manifest in place, or leaves it unchanged if the edit does not apply. */
  change(spec: Spec, dice: Dice): void;
}

const watchPath = "spec.triggers[].watch";
const selectorPaths = (path: string): string[] =>
  ["matchLabels{}", "matchExpressions[].key", "matchExpressions[].operator", "matchExpressions[].values[]"].map(
    (each) => `${path}.${each}`,
  );

/** An edit of a trigger's `watch`. */
const ofWatch = (
  name: string,
  tells: Tells,
  change: (watch: WatchSpec, dice: Dice) => void,
  paths = [`${watchPath}.${name}`],
): Edit => ({
  name,
  tells,
  paths,
  change: (spec, dice) => change(dice.pick(watches(spec)).watch, dice),
});

type DeliverySpec = NonNullable<Spec["delivery"]>;

/** An edit of `delivery`. */
const ofDelivery = (
  name: string,
  tells: Tells,
  change: (delivery: DeliverySpec, dice: Dice) => void,
  paths = [`spec.delivery.${name}`],
): Edit => ({
  name,
  tells,
  paths,
  change(spec, dice) {
    spec.delivery ??= {};
    change(spec.delivery, dice);
  },
});

/** An edit of a field on which no delivery depends. */
const neutral = (name: string, paths: readonly string[], change: (spec: Spec, dice: Dice) => void): Edit => ({
  name,
  tells: "nothing",
  paths,
  change,
});

type ScheduleSpec = NonNullable<TriggerSpec["schedule"]>;

/** An edit of a schedule. If the trigger has no schedule, it adds one. */
const ofSchedule = (name: string, change: (schedule: ScheduleSpec, dice: Dice) => void): Edit => ({
  name: `schedule.${name}`,
  tells: "nothing",
  paths: [`spec.triggers[].schedule.${name}`],
  change(spec, dice) {
    const found = spec.triggers.find(({ schedule }) => schedule);
    const schedule = found?.schedule ?? { every: "1h" };
    change(schedule, dice);
    if (!found) spec.triggers.push({ name: "hourly", schedule });
  },
});

const eventChoices = [
  ["Added", "Modified", "Deleted"],
  ["Added", "Modified"],
  ["Added", "Deleted"],
  ["Modified", "Deleted"],
  ["Modified"],
  ["Deleted"],
];

const selectionEdits: readonly Edit[] = [
  ofWatch(
    "namespaceSelector.matchNames",
    "selection",
    (watch, dice) => {
      watch.namespaceSelector = maybe(dice, [
        { matchNames: ["red"] },
        { matchNames: ["red", "blue"] },
        { matchNames: ["blue", "green"] },
      ]);
    },
    [`${watchPath}.namespaceSelector.matchNames[]`],
  ),
  ofWatch(
    "namespaceSelector by labels",
    "selection",
    (watch, dice) => {
      watch.namespaceSelector = copied(dice.pick(namespaceSelectors));
    },
    selectorPaths(`${watchPath}.namespaceSelector`),
  ),
  ofWatch(
    "labelSelector",
    "selection",
    (watch, dice) => {
      watch.labelSelector = copied(maybe(dice, labelSelectors));
    },
    selectorPaths(`${watchPath}.labelSelector`),
  ),
  ofWatch("fieldSelector", "selection", (watch, dice) => {
    watch.fieldSelector = maybe(dice, fieldSelectors);
  }),
];

const watchEdits: readonly Edit[] = [
  ofWatch("apiVersion", "nothing", (watch) => {
    watch.apiVersion = watch.apiVersion === versions[0] ? versions[1] : versions[0];
  }),
  {
    name: "kind",
    tells: "other",
    paths: [`${watchPath}.kind`],
    // The first trigger determines the reconciled kind.
    change(spec, dice) {
      const [, second] = watches(spec);
      if (second) second.watch.kind = dice.pick(kinds);
    },
  },
  ofWatch(
    "events",
    "nothing",
    (watch, dice) => {
      watch.events = dice.pick(eventChoices);
    },
    [`${watchPath}.events[]`],
  ),
  ofWatch("initialEvents", "nothing", (watch) => {
    watch.initialEvents = watch.initialEvents === "Skip" ? "Deliver" : "Skip";
  }),
  ofWatch(
    "changedFields",
    "nothing",
    (watch, dice) => {
      watch.changedFields = dice.pick([[], ...fields.map((field) => [field]), [".spec.a", ".spec.b"]]);
    },
    [`${watchPath}.changedFields[]`],
  ),
  ofWatch(
    "matchConditions",
    "other",
    (watch, dice) => {
      const choices = watch.object === "Metadata" ? metadataConditions : wholeConditions;
      const expression = maybe(dice, choices);
      watch.matchConditions = expression ? [{ name: dice.pick(["chosen", "other"]), expression }] : [];
    },
    [`${watchPath}.matchConditions[].name`, `${watchPath}.matchConditions[].expression`],
  ),
  ofWatch("object", "nothing", (watch) => {
    watch.object = watch.object === "Metadata" ? "Full" : "Metadata";
  }),
  ofWatch("lastBody", "nothing", (watch) => {
    watch.lastBody = watch.lastBody === "Metadata" ? "Full" : "Metadata";
  }),
];

const keyPath = "spec.triggers[].key";

const triggerEdits: readonly Edit[] = [
  {
    name: "trigger renamed",
    tells: "nothing",
    paths: ["spec.triggers[].name"],
    change(spec, dice) {
      const { trigger } = dice.pick(watches(spec));
      trigger.name = `${trigger.name}`.endsWith("-new") ? `${trigger.name}`.slice(0, -4) : `${trigger.name}-new`;
    },
  },
  {
    name: "names of two triggers swapped",
    tells: "nothing",
    paths: ["spec.triggers[].name"],
    change(spec) {
      const [first, second] = watches(spec);
      if (first && second)
        [first.trigger.name, second.trigger.name] = [`${second.trigger.name}`, `${first.trigger.name}`];
    },
  },
  {
    name: "trigger added",
    tells: "other",
    paths: [],
    change(spec, dice) {
      if (spec.triggers.length < 4) spec.triggers.push(secondTrigger(spec, dice));
    },
  },
  {
    name: "trigger removed",
    tells: "other",
    paths: [],
    change(spec) {
      const last = spec.triggers.findLastIndex(({ watch }) => watch);
      if (last > 0) spec.triggers.splice(last, 1);
    },
  },
  {
    name: "key",
    tells: "other",
    paths: [`${keyPath}.owner.apiVersion`, `${keyPath}.owner.kind`, `${keyPath}.expression`, `${keyPath}.all`],
    change(spec, dice) {
      const keyed = watches(spec).filter(({ trigger }) => trigger.key);
      if (keyed.length > 0) dice.pick(keyed).trigger.key = copied(dice.pick(keyRules));
    },
  },
  {
    name: "key.owner.apiVersion",
    tells: "nothing",
    paths: [`${keyPath}.owner.apiVersion`],
    change(spec) {
      for (const { trigger } of watches(spec)) {
        const { owner } = trigger.key ?? {};
        if (owner) owner.apiVersion = owner.apiVersion === versions[0] ? ownerKind.apiVersion : versions[0];
      }
    },
  },
];

const deliveryEdits: readonly Edit[] = [
  ofDelivery("mode", "other", (delivery, dice) => {
    delivery.mode = dice.pick(
      (["All", "Latest", "Reconcile", "Reconcile"] as const).filter((it) => it !== delivery.mode),
    );
  }),
  ofDelivery("concurrency", "nothing", (delivery, dice) => {
    delivery.concurrency = 1 + dice.below(5);
  }),
  ofDelivery("resync", "other", (delivery, dice) => {
    if (delivery.mode === "Reconcile") delivery.resync = maybe(dice, ["10m", "1h"]);
  }),
  ofDelivery("debounce", "nothing", (delivery, dice) => {
    delivery.debounce = maybe(dice, ["1s", "10s"]);
  }),
  ofDelivery(
    "batch",
    "nothing",
    (delivery, dice) => {
      if ((delivery.mode ?? "All") === "All")
        delivery.batch = maybe(dice, [{ maxSize: 2 + dice.below(3), maxWait: dice.pick(["200ms", "2s"]) }]);
    },
    ["spec.delivery.batch.maxSize", "spec.delivery.batch.maxWait"],
  ),
  ofDelivery("timeout", "nothing", (delivery, dice) => {
    delivery.timeout = dice.pick(["10s", "30s", "2m"]);
  }),
  ofDelivery(
    "retry",
    "nothing",
    (delivery, dice) => {
      delivery.retry = {
        maxAttempts: 3 + dice.below(4),
        initialDelay: dice.pick(["500ms", "5s"]),
        maxDelay: dice.pick(["1m", "3m"]),
        factor: 1 + dice.below(3),
      };
    },
    ["maxAttempts", "initialDelay", "maxDelay", "factor"].map((each) => `spec.delivery.retry.${each}`),
  ),
  ofDelivery("onFailure", "nothing", (delivery, dice) => {
    delivery.onFailure = dice.pick(["DeadLetter", "Block", "Drop"]);
  }),
  ofDelivery(
    "deadLetters",
    "nothing",
    (delivery, dice) => {
      delivery.deadLetters = { maxCount: 500 + dice.below(500), maxSize: dice.pick(["32Mi", "64Mi"]) };
    },
    ["spec.delivery.deadLetters.maxCount", "spec.delivery.deadLetters.maxSize"],
  ),
  ofDelivery(
    "shards",
    "nothing",
    (delivery, dice) => {
      delivery.shards = 1 + dice.below(3);
      delivery.shardBy = "Key";
    },
    ["spec.delivery.shards", "spec.delivery.shardBy"],
  ),
];

const scheduleEdits: readonly Edit[] = [
  ofSchedule("every", (schedule, dice) => {
    for (const name of ["cron", "timeZone"] as const) delete schedule[name];
    schedule.every = dice.pick(["1h", "2h", "30m"]);
  }),
  ofSchedule("cron", (schedule, dice) => {
    delete schedule.every;
    schedule.cron = dice.pick(["0 * * * *", "30 */2 * * *"]);
  }),
  ofSchedule("timeZone", (schedule, dice) => {
    delete schedule.every;
    schedule.cron ??= "0 * * * *";
    schedule.timeZone = dice.pick(["UTC", "Europe/Berlin"]);
  }),
  ofSchedule("jitter", (schedule, dice) => {
    schedule.jitter = maybe(dice, ["1m"]);
  }),
  ofSchedule("missed", (schedule, dice) => {
    schedule.missed = dice.pick(["Once", "Skip", "All"]);
  }),
];

const readPaths = ["apiVersion", "kind", "fieldSelector", "object", "indexes[].name", "indexes[].field"]
  .concat("namespaceSelector.matchNames[]", selectorPaths("namespaceSelector"), selectorPaths("labelSelector"))
  .map((each) => `spec.reads[].${each}`);
const permissionPaths = ["apiGroups[]", "resources[]", "verbs[]", "resourceNames[]", "namespaces[]"].map(
  (each) => `spec.permissions[].${each}`,
);
const refPaths = ["secretKeyRef", "configMapKeyRef"].flatMap((ref) =>
  ["name", "key", "optional"].map((each) => `spec.env[].valueFrom.${ref}.${each}`),
);

const neutralEdits: readonly Edit[] = [
  neutral("handler", ["spec.handler"], (spec) => {
    spec.handler = spec.handler === "./handler.ts" ? "./other.ts" : "./handler.ts";
  }),
  neutral("reads", readPaths, (spec, dice) => {
    const read = {
      ...ownerKind,
      indexes: [{ name: "byOwner", field: ".metadata.labels" }],
      labelSelector: copied(dice.pick(labelSelectors)),
      namespaceSelector: copied(dice.pick([{ matchNames: ["red"] }, ...namespaceSelectors])),
      fieldSelector: dice.pick(fieldSelectors),
      object: dice.pick(["Full", "Metadata"] as const),
    };
    spec.reads = dice.chance(0.2) ? [] : [read];
  }),
  neutral("permissions", permissionPaths, (spec, dice) => {
    const rule = { apiGroups: ["shop.example"], resources: ["shops"], verbs: ["get" as const] };
    spec.permissions = dice.chance(0.5) ? [] : [{ ...rule, namespaces: ["red"], resourceNames: ["a"] }];
  }),
  neutral(
    "resources",
    ["memory", "cache", "state", "cpuPerEvent"].map((each) => `spec.resources.${each}`),
    (spec, dice) => {
      const sizes = {
        memory: dice.pick(["32Mi", "64Mi"]),
        cache: dice.pick(["2Mi", "64Mi"]),
        state: dice.pick(["8Ki", "1Mi"]),
      };
      spec.resources = { ...sizes, cpuPerEvent: "200ms" };
    },
  ),
  neutral("canary", ["spec.canary.abortWhen.failureRate", "spec.canary.abortWhen.minRuns"], (spec, dice) => {
    spec.canary = { abortWhen: { failureRate: 0.5, minRuns: dice.pick([5, 20]) } };
  }),
  neutral("isolation", ["spec.isolation"], (spec) => {
    spec.isolation = spec.isolation === "Event" ? "Handler" : "Event";
  }),
  neutral("trustGroup", ["spec.trustGroup"], (spec, dice) => {
    spec.trustGroup = maybe(dice, ["ours", "theirs"]);
  }),
  neutral(
    "egress",
    ["host", "network", "ports[]"].map((each) => `spec.egress[].${each}`),
    (spec, dice) => {
      spec.egress = [{ host: dice.pick(["a.example", "b.example"]), ports: [443 + dice.below(3)], network: "Public" }];
    },
  ),
  neutral("env", ["spec.env[].name", "spec.env[].value", ...refPaths], (spec, dice) => {
    const ref = { name: "settings", key: dice.pick(["x", "y"]), optional: true };
    spec.env = [
      { name: "LEVEL", value: dice.pick(["1", "2"]) },
      dice.chance(0.5)
        ? { name: "TOKEN", valueFrom: { secretKeyRef: ref } }
        : { name: "TOKEN", valueFrom: { configMapKeyRef: ref } },
    ];
  }),
  neutral("paused", ["spec.paused"], (spec) => {
    spec.paused = !spec.paused;
  }),
];

/** Every kind of edit of a field. */
export const edits: readonly Edit[] = [
  ...selectionEdits,
  ...watchEdits,
  ...triggerEdits,
  ...deliveryEdits,
  ...scheduleEdits,
  ...neutralEdits,
];

/** Fields that no edit changes, and why they cannot make a difference to deliveries. */
export const uneditable: Readonly<Record<string, string>> = {
  apiVersion: "there is one version of the format",
  kind: "it is always Function",
  "metadata.name": "a function of another name is another function, with a record of its own",
};

const copied = <T>(value: T): T => (value === undefined ? value : structuredClone(value));
