import type { FunctionManifest, Trigger } from "../../../runtime/manifest/function.ts";
import { manifest, trigger } from "../../engine/fixture.ts";
import type { Dice } from "../random.ts";
import { keyOf, namespaces, type Revision } from "./cluster.ts";

/** A trigger's condition, as a CEL expression and as its equivalent in code. */
interface Condition {
  readonly expression: string;
  readonly comparesOld: boolean;
  holds(now: Revision, before: Revision | undefined): boolean;
}

const even: Condition = {
  expression: "object.spec.a % 2 == 0",
  comparesOld: false,
  holds: ({ a }) => a % 2 === 0,
};

const rises: Condition = {
  expression: "oldObject == null || object.spec.a > oldObject.spec.a",
  comparesOld: true,
  holds: ({ a }, before) => before === undefined || a > before.a,
};

/**
 * The condition first requires a text, so that a change of an object without that text may be skipped without an evaluation.
 */
const marked: Condition = {
  expression: "object.metadata.labels.on == 'true' && object.spec.a < 3",
  comparesOld: false,
  holds: ({ on, a }) => on && a < 3,
};

/** One function of a fleet. */
export interface Plan {
  readonly manifest: FunctionManifest;
  readonly trigger: Trigger;
  readonly condition: Condition | undefined;
  readonly usesOldObject: boolean;
  /** The key of an object whose handler always fails, and asks for long waits, while it is stuck. */
  readonly stuck: string | undefined;
}

/** A function with settings drawn by the seed. There are few kinds of sources, so that functions share them. */
export function planOf(name: string, dice: Dice): Plan {
  const condition = dice.chance(0.3) ? dice.pick([even, rises, marked]) : undefined;
  const watched = trigger({
    name: "settings",
    namespaces: dice.pick([
      { type: "all" },
      { type: "all" },
      { type: "names", names: namespaces.slice(0, 2) },
      { type: "labels", labelSelector: "on=true" },
    ] as const),
    labelSelector: dice.chance(0.25) ? "on=true" : "",
    initialEvents: dice.chance(0.3) ? "Skip" : "Deliver",
    changedFields: dice.chance(0.15) ? [["spec", "a"]] : [],
    matchConditions: condition ? [{ name: "chosen", expression: condition.expression }] : [],
    events: dice.chance(0.15) ? ["Added", "Modified"] : ["Added", "Modified", "Deleted"],
    lastBody: !condition?.comparesOld && dice.chance(0.2) ? "Metadata" : "Full",
  });
  const policy = {
    mode: dice.chance(0.25) ? ("Latest" as const) : ("All" as const),
    onFailure: dice.pick(["DeadLetter", "DeadLetter", "Block", "Drop"] as const),
    concurrency: 1 + dice.below(4),
  };
  return {
    manifest: { ...manifest(policy, [watched]), name, file: `functions/${name}/function.yaml` },
    trigger: watched,
    condition,
    usesOldObject: dice.chance(0.3),
    stuck: dice.chance(0.25) ? keyOf({ namespace: dice.pick(namespaces), name: "a" }) : undefined,
  };
}
