import type { ASTNode } from "@marcbachmann/cel-js";
import { type Compile, type CompiledExpression, type Evaluation, enter, type Scope, truth } from "./code.ts";
import { EvaluationError, failing, type Meter } from "./meter.ts";
import { childrenOf } from "./syntax.ts";
import { isMap, keyOf, mapGet, mapKeys, typeName, type Value } from "./value.ts";

type MacroKind = "all" | "exists" | "existsOne" | "list" | "map" | "filter";

/** Macros by name and number of arguments: their kind, and how many of the arguments are variables. */
const macros: ReadonlyMap<string, readonly [kind: MacroKind, variables: 1 | 2]> = new Map([
  ["all/2", ["all", 1]],
  ["exists/2", ["exists", 1]],
  ["exists_one/2", ["existsOne", 1]],
  ["map/2", ["list", 1]],
  ["map/3", ["list", 1]],
  ["filter/2", ["filter", 1]],
  ["all/3", ["all", 2]],
  ["exists/3", ["exists", 2]],
  ["exists_one/3", ["existsOne", 2]],
  ["existsOne/3", ["existsOne", 2]],
  ["transformList/3", ["list", 2]],
  ["transformList/4", ["list", 2]],
  ["transformMap/3", ["map", 2]],
  ["transformMap/4", ["map", 2]],
]);

/**
 * Returns the kind of a macro that iterates over a list or map, and how many of its arguments are variables. `undefined` for
 * another call.
 */
export const macroOf = (name: string, args: number): readonly [kind: MacroKind, variables: 1 | 2] | undefined =>
  macros.get(`${name}/${args}`);

/** Runs a loop's body for each element. `key`: the index or key. */
type Loop = (run: Evaluation, each: (key: Value, value: Value) => boolean) => void;

/** Compiles a macro that iterates over a list or map. Returns `undefined` for another call. */
export function comprehension(
  node: ASTNode,
  scope: Scope | undefined,
  compile: Compile,
): CompiledExpression | undefined {
  if (node.op !== "rcall") return undefined;
  const [name, receiver, args] = node.args;
  const [kind, variables] = macroOf(name, args.length) ?? [];
  if (kind === undefined) return undefined;
  const names = args.slice(0, variables).map((arg) => (arg.op === "id" ? arg.args : ""));
  const inner = names.reduce(enter, scope);
  const bodies = args.slice(names.length);
  const codes = bodies.map((body) => compile(body, inner));
  const [first, second] = codes;
  if (!first || !inner) throw new TypeError(`the macro ${name} has no body`);
  const loop = loopOver(
    compile(receiver, scope),
    inner.slot,
    variables === 2,
    bodies.reduce((sum, body) => sum + weight(body), 2),
  );
  switch (kind) {
    case "all":
      return quantifier(loop, first, false);
    case "exists":
      return quantifier(loop, first, true);
    case "existsOne":
      return (run) => countTrue(run, loop, first) === 1;
    case "filter":
      return (run) => collect(run, loop, first, (_, value) => value);
    case "list":
      return second
        ? (run) => collect(run, loop, first, () => second(run))
        : (run) => collect(run, loop, undefined, () => first(run));
    case "map":
      return (run) => toMap(run, loop, second && first, second ?? first);
  }
}

/** Returns the operations of one iteration, each of which takes about a unit's time. */
function weight(node: ASTNode): number {
  return childrenOf(node).reduce((sum, child) => sum + weight(child), 5);
}

function loopOver(receiver: CompiledExpression, last: number, pairs: boolean, cost: number): Loop {
  return (run, each) => {
    const { slots, meter } = run;
    walk(meter, receiver(run), (key, value, isMapKey) => {
      meter.pay(cost);
      if (pairs) slots[last - 1] = key;
      slots[last] = pairs || !isMapKey ? value : key;
      return each(key, pairs || !isMapKey ? value : key);
    });
  };
}

/** Iterates over a list or map until `each` returns false. */
function walk(meter: Meter, range: Value, each: (key: Value, value: Value, isMapKey: boolean) => boolean): void {
  if (Array.isArray(range)) {
    for (let index = 0; index < range.length; index++) if (!each(index, range[index], false)) return;
    return;
  }
  if (!isMap(range)) throw new EvaluationError(`${typeName(range)} cannot be gone over`);
  const keys = mapKeys(meter, range);
  for (const key of keys) if (!each(key, mapGet(range, key), true)) return;
}

/**
 * `exists` if `decisive` is true, `all` if it is false. The first element with that result decides, whatever error another one
 * had.
 */
function quantifier(loop: Loop, test: CompiledExpression, decisive: boolean): CompiledExpression {
  return (run) => {
    let failure: EvaluationError | undefined;
    let decided = false;
    loop(run, () => {
      try {
        decided = truth(test(run)) === decisive;
      } catch (error) {
        if (!(error instanceof EvaluationError)) throw error;
        run.meter.pay(failing);
        failure ??= error;
      }
      return !decided;
    });
    if (!decided && failure) throw failure;
    return decided === decisive;
  };
}

function countTrue(run: Evaluation, loop: Loop, test: CompiledExpression): number {
  let count = 0;
  loop(run, () => {
    if (truth(test(run))) count++;
    return true;
  });
  return count;
}

function collect(
  run: Evaluation,
  loop: Loop,
  test: CompiledExpression | undefined,
  item: (key: Value, value: Value) => Value,
): Value[] {
  const made: Value[] = [];
  loop(run, (key, value) => {
    if (!test || truth(test(run))) made.push(item(key, value));
    return true;
  });
  return made;
}

function toMap(
  run: Evaluation,
  loop: Loop,
  test: CompiledExpression | undefined,
  item: CompiledExpression,
): Map<Value, Value> {
  const made = new Map<Value, Value>();
  loop(run, (key) => {
    run.meter.pay(20);
    if (!test || truth(test(run))) made.set(keyOf(key), item(run));
    return true;
  });
  return made;
}
