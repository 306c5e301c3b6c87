import type { z } from "zod";
import { checkExpression } from "../../../runtime/engine/filter/check-expression.ts";
import type { FunctionManifest } from "../../../runtime/manifest/function.ts";
import { normalise } from "../../../runtime/manifest/normalise.ts";
import { ruleFaults } from "../../../runtime/manifest/rules.ts";
import { manifestSchema } from "../../../runtime/manifest/schema.ts";
import type { Dice } from "../random.ts";
import { fields, keyRules, labelSelectors, wholeConditions } from "./choices.ts";

/** A manifest's `spec` as a user writes it. Edits change a copy in place. */
export type Spec = z.input<typeof manifestSchema>["spec"];
export type TriggerSpec = Spec["triggers"][number];
export type WatchSpec = NonNullable<TriggerSpec["watch"]>;
export type LabelSelectorSpec = NonNullable<WatchSpec["labelSelector"]>;

/** The API group of all kinds in these worlds, and its versions, which serve the same objects. */
export const versions = ["shop.example/v1alpha1", "shop.example/v1"] as const;
export const kinds = ["Shop", "Part", "Tool"] as const;
export const functionName = "copy";

/** Returns the manifest in the runtime's form, or what is wrong with it in words. */
export function readSpec(spec: Spec): FunctionManifest | string {
  const document = { apiVersion: "watchfire.dev/v1alpha1", kind: "Function", metadata: { name: functionName }, spec };
  const checked = manifestSchema.safeParse(document);
  if (!checked.success) return checked.error.message;
  const [fault] = ruleFaults(document, checkExpression);
  if (fault) return `${fault.path.join(".")}: ${fault.what}`;
  return normalise(checked.data, `functions/${functionName}/function.yaml`, `/functions/${functionName}`);
}

/** The triggers with a watch, with that watch. */
export function watches(spec: Spec): { readonly trigger: TriggerSpec; readonly watch: WatchSpec }[] {
  return spec.triggers.flatMap((trigger) => (trigger.watch ? [{ trigger, watch: trigger.watch }] : []));
}

/** A random manifest with one or two triggers on Shops and Parts, sometimes with a schedule. */
export function anySpec(dice: Dice): Spec {
  const spec: Spec = {
    handler: "./handler.ts",
    triggers: [{ name: "shops", watch: watchOf("Shop", dice) }],
    delivery: {
      mode: dice.pick(["All", "All", "Latest", "Reconcile", "Reconcile"]),
      concurrency: 1 + dice.below(4),
      onFailure: dice.pick(["DeadLetter", "DeadLetter", "Block", "Drop"]),
      retry: { maxAttempts: 3 + dice.below(4), initialDelay: "1s", maxDelay: "1m" },
    },
  };
  if (dice.chance(0.6)) spec.triggers.push(secondTrigger(spec, dice));
  if (dice.chance(0.1)) spec.triggers.push({ name: "hourly", schedule: { every: "1h" } });
  repair(spec, dice);
  return spec;
}

/** Makes a second trigger: on another kind, or on the same kind with a different selector. */
export function secondTrigger(spec: Spec, dice: Dice): TriggerSpec {
  const taken = new Set(spec.triggers.map(({ name }) => name));
  const [name, kind] = dice.pick([
    ["parts", "Part"],
    ["parts", "Part"],
    ["tools", "Tool"],
    ["more", "Shop"],
  ] as const);
  return { name: taken.has(name) ? `${name}-${taken.size}` : name, watch: watchOf(kind, dice) };
}

function watchOf(kind: string, dice: Dice): WatchSpec {
  return {
    apiVersion: dice.pick(versions),
    kind,
    ...(dice.chance(0.3) && { labelSelector: dice.pick(labelSelectors) }),
    ...(dice.chance(0.3) && { namespaceSelector: { matchNames: dice.pick([["red"], ["red", "blue"]]) } }),
    ...(dice.chance(0.1) && { namespaceSelector: { matchLabels: { team: "a" } } }),
    ...(dice.chance(0.2) && { initialEvents: "Skip" as const }),
    ...(dice.chance(0.2) && { changedFields: [dice.pick(fields)] }),
    ...(dice.chance(0.2) && { matchConditions: [{ name: "chosen", expression: dice.pick(wholeConditions) }] }),
    ...(dice.chance(0.2) && { object: "Metadata" as const }),
    ...(dice.chance(0.3) && { lastBody: "Metadata" as const }),
  };
}

/**
 * Makes an edited manifest valid: each mode has its own fields, and a trigger that reads only metadata may refer to nothing else.
 * The first trigger is the one without `key`.
 */
export function repair(spec: Spec, dice: Dice): void {
  const delivery = spec.delivery ?? {};
  const isReconciler = delivery.mode === "Reconcile";
  for (const [index, { trigger, watch }] of watches(spec).entries()) {
    if (!isReconciler || index === 0) delete trigger.key;
    else trigger.key ??= dice.pick(keyRules);
    if (watch.object === "Metadata") repairMetadata(watch);
    if (isReconciler && index === 0 && watch.object !== "Metadata") watch.lastBody = "Full";
    const partial = watch.object === "Metadata" || watch.lastBody === "Metadata";
    if (partial && trigger.key?.expression?.includes("spec")) trigger.key = { owner: { ...ownerKind } };
  }
  if (!isReconciler) delete delivery.resync;
  if (delivery.mode !== undefined && delivery.mode !== "All") delete delivery.batch;
}

export const ownerKind = { apiVersion: versions[1], kind: kinds[0] };

function repairMetadata(watch: WatchSpec): void {
  watch.changedFields = watch.changedFields?.filter((field) => field.startsWith(".metadata")) ?? [];
  watch.matchConditions = watch.matchConditions?.filter(({ expression }) => !expression.includes(".spec")) ?? [];
}
