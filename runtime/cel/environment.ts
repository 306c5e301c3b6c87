import { Environment } from "@marcbachmann/cel-js";
import { libraries } from "./functions.ts";
import { pairMacros } from "./pair-macros.ts";

/**
 * Operators, brackets, calls and field accesses in one another. Kubernetes' parser stops at 250; the type checker here
 * takes time in the square of it.
 */
export const deepestExpression = 100;

/** Signatures that the type checker has in another form. */
const said: ReadonlySet<string> = new Set(["type(dyn): type", "dyn(dyn): dyn"]);

/** Operators of types that the type checker's library compares not at all. */
const operators: readonly string[] = [
  ...libraries
    .flatMap(({ types = [] }) => types)
    .filter(([name]) => !name.startsWith("google.protobuf."))
    .map(([name]) => `${name} == ${name}`),
  ...["<", "<=", ">", ">="].map((operator) => `bytes ${operator} bytes`),
  "optional<A> == optional<A>",
];

/** A signature as the type checker writes it. */
const spelled = (signature: string): string =>
  signature
    .replace(/\blist\b(?!<)/g, "list<dyn>")
    .replace(/\bmap\b(?!<)/g, "map<dyn, dyn>")
    .replace(/\boptional\b(?!<)/g, "optional<dyn>");

/** Types of what a condition can name. It parses and checks; the library's evaluation is never used. */
export const environment: Environment = makeEnvironment();

function makeEnvironment(): Environment {
  const options = {
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
    limits: { maxDepth: deepestExpression },
  } as const;
  // One environment is asked and another is extended. A function registered on one that was asked is every
  // environment's (cel-js 8.0.0), also of those that the embedded cluster makes in this process.
  const { functions, variables } = new Environment(options).getDefinitions();
  const made = new Environment(options);
  const known = new Set(functions.map(({ signature }) => signature));
  const named = new Set(variables.map(({ name }) => name));
  for (const { types = [], namespaces = [] } of libraries) {
    for (const [name] of types) {
      if (!name.startsWith("google.protobuf.")) made.registerType(name, class {});
    }
    for (const name of namespaces) {
      if (named.has(name)) continue;
      const Marker = class {};
      made.registerType(name, Marker).registerConstant(name, name, new Marker());
    }
  }
  for (const [signature] of libraries.flatMap(({ functions: own }) => own)) {
    if (!said.has(signature) && !known.has(spelled(signature))) made.registerFunction(signature, neverCalled);
  }
  for (const operator of operators) made.registerOperator(`${operator}: bool`, neverCalled);
  for (const [signature, expand] of pairMacros) made.registerFunction(signature, expand);
  return made.registerVariable("object", "dyn").registerVariable("oldObject", "dyn");
}

function neverCalled(): never {
  throw new TypeError("expressions are not evaluated by the type checker's library");
}
