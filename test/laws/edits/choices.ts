// Fields of the objects in these worlds, and the expressions that manifests may apply to them, each with its meaning in code.
import type { Dice } from "../random.ts";

/** Returns one of the items, or `undefined`. */
export const maybe = <T>(dice: Dice, items: readonly T[]): T | undefined =>
  dice.chance(1 / (items.length + 1)) ? undefined : dice.pick(items);

/** The parts of an object's state that manifests refer to. */
export interface Content {
  readonly namespace: string;
  readonly name: string;
  /** Increases: a later state never has an earlier state's value again. */
  readonly a: number;
  /** 0 to 7, in any order. */
  readonly b: number;
  readonly labels: Readonly<Record<string, string>>;
  /** The name of the Shop that owns it; undefined: it has no owner. */
  readonly owner: string | undefined;
  /** The name of a Shop in its spec. */
  readonly of: string;
}

export const namespaces = ["red", "blue", "green"] as const;
export const namespaceLabels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  red: { team: "a" },
  blue: { team: "b", shared: "yes" },
  green: { shared: "yes" },
};
export const names = ["a", "b", "c"] as const;

const withLabels = (matchLabels: Record<string, string>) => ({ matchLabels });

export const labelSelectors = [
  withLabels({ on: "true" }),
  withLabels({ on: "false" }),
  { matchExpressions: [{ key: "tier", operator: "In" as const, values: ["x"] }] },
  { matchExpressions: [{ key: "tier", operator: "NotIn" as const, values: ["x"] }] },
  { matchExpressions: [{ key: "tier", operator: "Exists" as const }] },
  { matchExpressions: [{ key: "tier", operator: "DoesNotExist" as const }] },
];

export const namespaceSelectors = [
  withLabels({ team: "a" }),
  withLabels({ shared: "yes" }),
  { matchExpressions: [{ key: "team", operator: "In" as const, values: ["a", "b"] }] },
  { matchExpressions: [{ key: "team", operator: "DoesNotExist" as const }] },
];

export const fieldSelectors = ["metadata.name=a", "metadata.name!=a", "metadata.name!=b"];

interface Condition {
  /** `undefined` if the answer depends on the previous state. */
  holds(now: Content): boolean | undefined;
}

const conditions: Readonly<Record<string, Condition>> = {
  "object.spec.b % 2 == 0": { holds: ({ b }) => b % 2 === 0 },
  "object.spec.b < 5": { holds: ({ b }) => b < 5 },
  'object.metadata.labels.on == "true"': { holds: ({ labels }) => labels.on === "true" },
  'object.metadata.name != "c"': { holds: ({ name }) => name !== "c" },
  "oldObject == null || object.spec.b > oldObject.spec.b": { holds: () => undefined },
};

export const wholeConditions = Object.keys(conditions);
export const metadataConditions = wholeConditions.filter((each) => !each.includes(".spec"));

/** Whether a condition holds for a state; `undefined` if that depends on the previous state. */
export const holds = (expression: string, now: Content): boolean | undefined => conditions[expression]?.holds(now);

const readers: Readonly<Record<string, (state: Content) => unknown>> = {
  ".spec.a": ({ a }) => a,
  ".spec.b": ({ b }) => b,
  ".metadata.labels": ({ labels }) => labels,
};

export const fields = Object.keys(readers);

/** The values of changed fields, given by their segments, as one text. */
export const digestOf = (paths: readonly (readonly string[])[], state: Content): string =>
  JSON.stringify(paths.map((path) => readers[`.${path.join(".")}`]?.(state)));

export const keyRules = [
  { owner: { apiVersion: "shop.example/v1", kind: "Shop" } },
  { expression: "object.spec.of" },
  { expression: "object.metadata.labels.on == 'true' ? ['a', 'b'] : ['c']" },
  { all: true as const },
];

/** The names that a key's expression returns for a state. */
export function expressionNames(expression: string, { labels, of }: Content): string[] {
  return expression === "object.spec.of" ? [of] : labels.on === "true" ? ["a", "b"] : ["c"];
}
