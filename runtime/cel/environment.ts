import { type ASTNode, Environment as TypeChecker } from "@marcbachmann/cel-js";
import { type DeclaredType, reservedWords } from "./declared-type.ts";
import { ExpressionError } from "./expression-error.ts";
import { libraries } from "./functions.ts";
import { checkPresenceByType, pairMacros } from "./pair-macros.ts";
import { checkAsRule } from "./rule-checks.ts";
import { bound, syntaxError } from "./syntax.ts";

/** A parsed expression, and the type checker's name of its type. */
interface TypedExpression {
  readonly ast: ASTNode;
  readonly type: string;
}

/** Limits of an expression. */
interface ExpressionLimits {
  /** Maximum length of its text, in UTF-16 units. */
  readonly longest: number;
  /** Maximum nesting of operators, brackets, calls and field accesses. The type checker's time is quadratic in it. */
  readonly deepest: number;
  /**
   * True to also refuse expressions that Kubernetes refuses in rules although their types fit: mixed literals, invalid time
   * constants.
   */
  readonly asRule?: boolean;
}

/** The parser recurses for each sign. */
const manySigns = /(?:[!-]\s*){50}/;

/** Signatures that the type checker declares in another form. */
const said: ReadonlySet<string> = new Set(["type(dyn): type", "dyn(dyn): dyn"]);

/** Operators of types that the type checker's library cannot compare. */
const operators: readonly string[] = [
  ...libraries
    .flatMap(({ types = [] }) => types)
    .filter(([name]) => !name.startsWith("google.protobuf."))
    .flatMap(([name]) => [`${name} == ${name}`, `${name} == null`]),
  ...["<", "<=", ">", ">="].map((operator) => `bytes ${operator} bytes`),
  "optional<A> == optional<A>",
  "optional<dyn> == null",
  "google.protobuf.Timestamp == null",
  "google.protobuf.Duration == null",
];

/** Returns a signature as the type checker writes it. */
const spelled = (signature: string): string =>
  signature
    .replace(/\blist\b(?!<)/g, "list<dyn>")
    .replace(/\bmap\b(?!<)/g, "map<dyn, dyn>")
    .replace(/\boptional\b(?!<)/g, "optional<dyn>");

/** Functions, types and macros. Only its clones are used, because an environment that has been used accepts no more of them. */
const library: TypeChecker = makeLibrary();

/** An environment with the variables of an expression, by type. Parses and checks; the library's evaluation is never used. */
export class CelEnvironment {
  private readonly checker: TypeChecker;
  private readonly limits: ExpressionLimits;
  private readonly declared = new Map<DeclaredType, string>();
  private readonly objects = new Map<string, DeclaredType>();

  constructor(variables: Readonly<Record<string, DeclaredType>>, limits: ExpressionLimits) {
    const lists = limits.asRule ? { maxListElements: 100_000, maxMapEntries: 100_000 } : {};
    this.checker = library.clone({ limits: { maxDepth: limits.deepest, ...lists } });
    this.limits = limits;
    for (const [name, type] of Object.entries(variables)) this.checker.registerVariable(name, this.typeName(type));
  }

  /** Declares the object types inside a type, the innermost first. Returns the type checker's name of the type. */
  private typeName(type: DeclaredType): string {
    let name = this.declared.get(type);
    if (name !== undefined) return name;
    const { element, fields } = type;
    if (fields) {
      const named = Object.fromEntries([...fields].map(([field, inner]) => [field, this.typeName(inner)]));
      // The unescaped word also names the field, if the parser accepts it.
      for (const word of reservedWords) {
        const inner = named[`__${word}__`];
        if (inner !== undefined) named[word] ??= inner;
      }
      name = `object.${this.declared.size}`;
      this.checker.registerType(name, { fields: named });
      for (const other of [name, "null"]) this.checker.registerOperator(`${name} == ${other}: bool`, neverCalled);
      this.objects.set(name, type);
    } else {
      const inner = element && this.typeName(element);
      name = inner === undefined ? type.name : `${type.name}<${type.name === "map" ? "string, " : ""}${inner}>`;
    }
    this.declared.set(type, name);
    return name;
  }

  /**
   * Parses an expression and checks its types.
   * @throws ExpressionError if it does not compile
   */
  parse(expression: string): TypedExpression {
    const { longest, deepest, asRule = false } = this.limits;
    if (expression.length > longest) throw syntaxError(`has ${expression.length} characters, more than ${longest}`);
    const signs = manySigns.exec(expression);
    if (signs) throw syntaxError("does not compile: too many signs in a row", signs.index);
    let parsed: ReturnType<TypeChecker["parse"]>;
    try {
      parsed = this.checker.parse(expression);
    } catch (error) {
      throw ExpressionError.from("WF_FILTER_CONDITION_SYNTAX", error);
    }
    bound(parsed.ast, deepest, asRule);
    checkPresenceByType(parsed.ast);
    const { valid, type = "dyn", error } = parsed.check();
    if (!valid) throw ExpressionError.from("WF_FILTER_CONDITION_TYPE", error);
    if (asRule) checkAsRule(parsed.ast, (name) => this.objects.get(name));
    return { ast: parsed.ast, type };
  }
}

function makeLibrary(): TypeChecker {
  const options = {
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
  } as const;
  // One environment is used and another is extended. A function registered on a used environment would be added to every
  // environment (cel-js 8.0.0), including those of the embedded cluster in this process.
  const { functions, variables } = new TypeChecker(options).getDefinitions();
  const made = new TypeChecker(options);
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
  return made;
}

function neverCalled(): never {
  throw new TypeError("expressions are not evaluated by the type checker's library");
}
