import { isFields } from "../api/object.ts";

/** One step of a path: a member, an index, every item, or the items with a value at a path. */
type Step =
  | { kind: "member"; name: string }
  | { kind: "index"; index: number }
  | { kind: "all" }
  | { kind: "filter"; path: Step[]; operator: string; value: string };

const stepPattern =
  /\.\*|\.([A-Za-z0-9_$/-]+(?:\\\.[A-Za-z0-9_$/-]+)*)|\[\*\]|\[(-?\d+)\]|\['([^']*)'\]|\["([^"]*)"\]|\[\?\(@([^=!<>)]+?)\s*(==|!=)\s*["']?([^"')]*)["']?\)\]/y;

/**
 * Compiles the subset of JSONPath that printer columns use: members, indices, `*` and filters by (in)equality. Returns a function
 * that finds every match in order; `undefined` for a path outside the subset.
 */
export function jsonPath(path: string): ((value: unknown) => unknown[]) | undefined {
  const steps = parse(path.replace(/^\$/, ""));
  return steps && ((value) => follow(value, steps));
}

function parse(path: string): Step[] | undefined {
  const steps: Step[] = [];
  stepPattern.lastIndex = 0;
  while (stepPattern.lastIndex < path.length) {
    const match = stepPattern.exec(path);
    if (!match) return undefined;
    const [whole, member, index, single, double, left, operator = "", value = ""] = match;
    const name = member?.replace(/\\\./g, ".") ?? single ?? double;
    if (name !== undefined) steps.push({ kind: "member", name });
    else if (index !== undefined) steps.push({ kind: "index", index: Number(index) });
    else if (left !== undefined) {
      const last = stepPattern.lastIndex;
      const inner = parse(left.trim());
      if (!inner) return undefined;
      stepPattern.lastIndex = last;
      steps.push({ kind: "filter", path: inner, operator, value });
    } else if (whole) steps.push({ kind: "all" });
  }
  return steps;
}

function follow(value: unknown, steps: readonly Step[]): unknown[] {
  const [step, ...rest] = steps;
  if (!step) return value === undefined ? [] : [value];
  return next(value, step).flatMap((one) => follow(one, rest));
}

function next(value: unknown, step: Step): unknown[] {
  if (step.kind === "member") return isFields(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [];
  if (step.kind === "all") return Array.isArray(value) ? value : isFields(value) ? Object.values(value) : [];
  if (!Array.isArray(value)) return [];
  if (step.kind === "index") return value.at(step.index) === undefined ? [] : [value.at(step.index)];
  return value.filter((item) => {
    const equal = follow(item, step.path).some((found) => String(found) === step.value);
    return equal === (step.operator === "==");
  });
}
