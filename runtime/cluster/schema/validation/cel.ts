import { TypeError as CelTypeError, Environment, Optional, ParseError } from "@marcbachmann/cel-js";
import type { Json } from "../json.ts";
import type { Schema } from "../schema.ts";
import { addKubernetesLibrary } from "./cel-library.ts";
import { declareType } from "./cel-type.ts";
import { celValue } from "./cel-value.ts";

const options = { enableOptionalTypes: true, homogeneousAggregateLiterals: false, limits: { maxDepth: 100 } } as const;

let base: Environment | undefined;
const dynamic = new Map<"dyn" | "optional<dyn>", Environment>();
let durations: ((context: { text: string }) => unknown) | undefined;

/** Cloned rather than built for each rule. */
function library(): Environment {
  base ??= addKubernetesLibrary(new Environment(options));
  return base;
}

/** An expression ready to run: throws what evaluation throws. */
export type Program = (self: unknown, oldSelf: unknown) => unknown;

/** Compiles an expression over `self` and `oldSelf` of any type, the latter optional if so said. Throws a ParseError. */
export function compile(expression: string, optionalOldSelf: boolean): Program {
  // Declared as what it is: the library finds no overload for what `value()` of a `dyn` gives.
  const oldSelf = optionalOldSelf ? "optional<dyn>" : "dyn";
  let environment = dynamic.get(oldSelf);
  if (!environment) {
    environment = library().clone().registerVariable("self", "dyn").registerVariable("oldSelf", oldSelf);
    dynamic.set(oldSelf, environment);
  }
  const run = environment.parse(expression);
  return (self, old) => run({ self, oldSelf: old });
}

/** A value as expressions see it. */
export function toCel(value: Json, schema: Schema): unknown {
  durations ??= library().clone().registerVariable("text", "string").parse("duration(text)");
  const make = durations;
  return celValue(value, schema, (text) => make({ text }));
}

/** `oldSelf` of a rule with optionalOldSelf. */
export function toOptional(value: unknown): unknown {
  return value === undefined ? Optional.none() : Optional.of(value);
}

/**
 * Checks an expression against the schema that its `self` has. Gives the type of its result (`bool`, `string`, `dyn`),
 * or what is wrong with it, as the API server shows it.
 */
export function checkExpression(
  expression: string,
  schema: Schema,
  top: boolean,
  optionalOldSelf: boolean,
): { type: string; error?: undefined } | { type?: undefined; error: string } {
  const environment = library().clone();
  const self = declareType(environment, schema, top);
  environment.registerVariable("self", self).registerVariable("oldSelf", optionalOldSelf ? `optional<${self}>` : self);
  try {
    const { valid, type, error } = environment.parse(expression).check();
    return valid && type !== undefined ? { type } : { error: describe(error, expression) };
  } catch (error) {
    return { error: describe(error, expression) };
  }
}

function describe(error: unknown, expression: string): string {
  if (!(error instanceof ParseError || error instanceof CelTypeError)) return String(error);
  const { text, at } = inGoWords(error, expression);
  const before = expression.slice(0, at).split("\n");
  const column = before.at(-1)?.length ?? 0;
  const line = expression.split("\n")[before.length - 1] ?? "";
  return `ERROR: <input>:${before.length}:${column + 1}: ${text}\n | ${line}\n | ${".".repeat(column)}^`;
}

/** The error as cel-go says it, for the mistakes that are usual, and where: an offset in the expression. */
function inGoWords(error: ParseError | CelTypeError, expression: string): { text: string; at: number } {
  const at = error.range?.start ?? 0;
  if (error instanceof ParseError) return { text: `Syntax error: ${error.summary}`, at };
  const [, variable] = /^Unknown variable: (.*)$/.exec(error.summary) ?? [];
  if (variable) return { text: `undeclared reference to '${variable}' (in container '')`, at };
  const [, field] = /^No such key: (.*)$/.exec(error.summary) ?? [];
  if (field) return { text: `undefined field '${field}'`, at: expression[at] === "." ? at : Math.max(at - 1, 0) };
  const [, left, operator = "", right] = /^no such overload: (\S+) (\S+) (\S+)$/.exec(error.summary) ?? [];
  if (left === undefined) return { text: error.summary, at };
  const found = expression.indexOf(operator, at);
  const text = `found no matching overload for '_${operator}_' applied to '(${left}, ${right})'`;
  return { text, at: found < 0 ? at : found };
}
