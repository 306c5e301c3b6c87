/**
 * CEL with Kubernetes' libraries: an environment parses an expression and checks its types, `compile` turns it into a closure,
 * and a Meter limits the cost of one evaluation. Values are parsed JSON, without conversion.
 */
export type { ASTNode } from "@marcbachmann/cel-js";
export type { CompiledExpression } from "./code.ts";
export { compile } from "./compile.ts";
export { estimateCost } from "./cost.ts";
export { type DeclaredType, dynamic, reservedWords } from "./declared-type.ts";
export { CelEnvironment } from "./environment.ts";
export { ExpressionError, firstLine } from "./expression-error.ts";
export { EvaluationError, expressionLimit, LimitExceeded, Meter, triggerLimit } from "./meter.ts";
export { Quantity } from "./quantity.ts";
export { childrenOf, patternSize } from "./syntax.ts";
export { Duration, Timestamp } from "./time.ts";
export { double, isInt64, Optional, typeName, UnorderedList, type Value } from "./value.ts";
