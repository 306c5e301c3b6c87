import type { ASTNode } from "@marcbachmann/cel-js";
import { element, field, hasField, optionalElement, optionalField } from "./access.ts";
import { type ArithmeticOperator, calculate, negate } from "./arithmetic.ts";
import { type CompiledExpression, type Evaluation, enter, type Scope, slotOf, truth } from "./code.ts";
import { comprehension } from "./comprehension.ts";
import { literal } from "./conversions.ts";
import { compare, equals } from "./equality.ts";
import { ExpressionError } from "./expression-error.ts";
import { functionOf, namespaces } from "./functions.ts";
import { EvaluationError, failing } from "./meter.ts";
import { RegularExpression } from "./regular-expression.ts";
import { constantPattern } from "./syntax.ts";
import { int, isDouble, isMap, keyOf, mapGet, Optional, TypeValue, typeName, type Value } from "./value.ts";

/** Names of types and namespaces. */
const constants: ReadonlyMap<string, Value> = new Map<string, Value>([
  ...["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"].map(
    (name) => [name, new TypeValue(name)] as const,
  ),
  [
    "google",
    {
      protobuf: {
        Duration: new TypeValue("google.protobuf.Duration"),
        Timestamp: new TypeValue("google.protobuf.Timestamp"),
      },
    },
  ],
  ...namespaces,
]);

/**
 * Compiles an expression to closures over parsed JSON, which is neither copied nor converted.
 *
 * @throws ExpressionError for a constant pattern that RE2 refuses, and for a function that Kubernetes does not have
 */
export function compile(node: ASTNode, scope?: Scope): CompiledExpression {
  switch (node.op) {
    case "value":
      return constant(node.args, node);
    case "id":
      return variable(node.args, scope);
    case ".": {
      const [of, name] = [compile(node.args[0], scope), node.args[1]];
      return (run) => field(of(run), name);
    }
    case ".?": {
      const [of, name] = [compile(node.args[0], scope), node.args[1]];
      return (run) => optionalField(of(run), name);
    }
    case "[]": {
      const [of, key] = both(node.args, scope);
      return (run) => element(of(run), key(run));
    }
    case "[?]": {
      const [of, key] = both(node.args, scope);
      return (run) => optionalElement(of(run), key(run));
    }
    case "call":
      return call(node, node.args[0], undefined, node.args[1], scope);
    case "rcall":
      return macro(node, scope) ?? call(node, node.args[0], node.args[1], node.args[2], scope);
    case "list": {
      const items = node.args.map((item) => compile(item, scope));
      return (run) => items.map((item) => item(run));
    }
    case "map":
      return mapLiteral(node.args, scope);
    case "?:": {
      const [test, yes, no] = node.args.map((part) => compile(part, scope));
      return (run) => (truth(test?.(run)) ? yes?.(run) : no?.(run));
    }
    case "||":
      return either(node.args, scope, true);
    case "&&":
      return either(node.args, scope, false);
    case "!_": {
      const of = compile(node.args, scope);
      return (run) => !truth(of(run));
    }
    case "-_": {
      // The smallest int has no positive counterpart.
      const least = node.args.op === "value" && typeof node.args.args === "bigint" ? int(-node.args.args) : undefined;
      if (least !== undefined) return () => least;
      const of = compile(node.args, scope);
      return (run) => negate(of(run));
    }
    default:
      return binary(node.op, node.args, scope);
  }
}

function constant(text: unknown, node: ASTNode): CompiledExpression {
  try {
    const value = literal(text);
    return () => value;
  } catch (error) {
    throw refused(error, node);
  }
}

/** Returns the expression's error if evaluating a constant failed. */
function refused(error: unknown, node: ASTNode): unknown {
  if (!(error instanceof EvaluationError)) return error;
  return new ExpressionError("WF_FILTER_CONDITION_TYPE", error.message, node.start);
}

const both = (
  [left, right]: readonly [ASTNode, ASTNode],
  scope: Scope | undefined,
): [CompiledExpression, CompiledExpression] => [compile(left, scope), compile(right, scope)];

function variable(name: string, scope: Scope | undefined): CompiledExpression {
  const slot = slotOf(scope, name);
  if (slot !== undefined) return ({ slots }) => slots[slot];
  if (name === "object" || name === "self") return ({ object }) => object;
  if (name === "oldObject" || name === "oldSelf") return ({ oldObject }) => oldObject();
  const value = constants.get(name);
  return () => value;
}

function mapLiteral(entries: readonly (readonly [ASTNode, ASTNode])[], scope: Scope | undefined): CompiledExpression {
  const keys = new Set<unknown>();
  for (const [key] of entries) {
    const value = key.op === "value" ? literal(key.args) : undefined;
    if (isDouble(value) || value === null || value instanceof Uint8Array || keys.has(keyOf(value))) {
      throw new ExpressionError(
        "WF_FILTER_CONDITION_TYPE",
        "a map's keys are bool, int, uint or string, and unlike",
        key.start,
      );
    }
    keys.add(keyOf(value));
  }
  const codes = entries.map(([key, value]) => [compile(key, scope), compile(value, scope)] as const);
  return (run) => new Map(codes.map(([key, value]) => [keyOf(key(run)), value(run)]));
}

/**
 * Evaluates `||`, for which true is decisive, and `&&`, for which false is. If one side is decisive, the other may have no value.
 */
function either(args: readonly [ASTNode, ASTNode], scope: Scope | undefined, decisive: boolean): CompiledExpression {
  const [left, right] = both(args, scope);
  return (run) => {
    let first: boolean;
    try {
      first = truth(left(run));
    } catch (error) {
      if (!(error instanceof EvaluationError)) throw error;
      run.meter.pay(failing);
      if (truth(right(run)) === decisive) return decisive;
      throw error;
    }
    return first === decisive ? decisive : truth(right(run));
  };
}

function binary(
  operator: Exclude<ASTNode["op"], "value">,
  args: readonly [ASTNode, ASTNode],
  scope: Scope | undefined,
): CompiledExpression {
  const [left, right] = both(args, scope);
  switch (operator) {
    case "==":
      return (run) => equals(run.meter, left(run), right(run));
    case "!=":
      return (run) => !equals(run.meter, left(run), right(run));
    case "<":
      return (run) => compare(run.meter, "<", left(run), right(run)) < 0;
    case "<=":
      return (run) => compare(run.meter, "<=", left(run), right(run)) <= 0;
    case ">":
      return (run) => compare(run.meter, ">", left(run), right(run)) > 0;
    case ">=":
      return (run) => compare(run.meter, ">=", left(run), right(run)) >= 0;
    case "in":
      return (run) => isIn(run, left(run), right(run));
    default:
      return (run) => calculate(run.meter, operator as ArithmeticOperator, left(run), right(run));
  }
}

function isIn({ meter }: Evaluation, item: Value, range: Value): boolean {
  if (Array.isArray(range)) return range.some((each) => equals(meter, item, each));
  if (isMap(range)) return mapGet(range, item) !== undefined;
  throw new EvaluationError(`no such overload: ${typeName(item)} in ${typeName(range)}`);
}

/** Compiles calls that do not evaluate all their arguments, or that declare variables. Returns `undefined` for other calls. */
function macro(node: ASTNode, scope: Scope | undefined): CompiledExpression | undefined {
  const loop = comprehension(node, scope, compile);
  if (loop || node.op !== "rcall") return loop;
  const [name, receiver, args] = node.args;
  const [first, second, third] = args;
  if (name === "bind" && receiver.op === "id" && receiver.args === "cel" && first?.op === "id" && second && third) {
    return binding(first.args, compile(second, scope), third, scope);
  }
  if ((name === "or" || name === "orValue") && first && args.length === 1) {
    const [of, other] = [compile(receiver, scope), compile(first, scope)];
    return (run) => {
      const optional = optionalOf(of(run));
      if (optional.value === undefined) return other(run);
      return name === "or" ? optional : optional.value;
    };
  }
  if ((name === "optMap" || name === "optFlatMap") && first?.op === "id" && second) {
    const of = compile(receiver, scope);
    const inner = enter(scope, first.args);
    const body = compile(second, inner);
    return (run) => {
      const { value } = optionalOf(of(run));
      if (value === undefined) return Optional.none;
      run.slots[inner.slot] = value;
      return name === "optMap" ? new Optional(body(run)) : body(run);
    };
  }
  return undefined;
}

function binding(name: string, value: CompiledExpression, body: ASTNode, scope: Scope | undefined): CompiledExpression {
  const inner = enter(scope, name);
  const code = compile(body, inner);
  return (run) => {
    run.slots[inner.slot] = value(run);
    return code(run);
  };
}

function optionalOf(value: Value): Optional {
  if (value instanceof Optional) return value;
  throw new EvaluationError(`expected an optional, found ${typeName(value)}`);
}

function call(
  node: ASTNode,
  name: string,
  receiver: ASTNode | undefined,
  args: readonly ASTNode[],
  scope: Scope | undefined,
): CompiledExpression {
  const [first] = args;
  if (name === "has" && !receiver && first && (first.op === "." || first.op === ".?")) {
    const [of, key] = [compile(first.args[0], scope), first.args[1]];
    return (run) => hasField(of(run), key);
  }
  const all = receiver ? [receiver, ...args] : args;
  const called = functionOf(name, receiver !== undefined, all.length);
  if (!called)
    throw new ExpressionError("WF_FILTER_CONDITION_TYPE", `calls ${name}, which conditions do not have,`, node.start);
  const pattern = constantPattern(node);
  const values = all.map((part) => (part === pattern ? compilePattern(pattern) : compile(part, scope)));
  const [a, b] = values;
  if (a && !b) return (run) => called(run.meter, [a(run)]);
  if (a && b && values.length === 2) return (run) => called(run.meter, [a(run), b(run)]);
  return (run) =>
    called(
      run.meter,
      values.map((value) => value(run)),
    );
}

/** Compiles a pattern: a constant one once. */
function compilePattern(node: NonNullable<ReturnType<typeof constantPattern>>): CompiledExpression {
  try {
    const compiled = new RegularExpression(node.args);
    return () => compiled;
  } catch (error) {
    throw refused(error, node);
  }
}
