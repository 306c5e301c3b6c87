/** Most conditions of one trigger, as in Kubernetes for a webhook or a policy (pkg/apis/admissionregistration/validation). */
export const mostConditions = 64;

/** Longest expression of a condition, in UTF-16 units. */
export const longestExpression = 4096;

/**
 * Work that compiling the expressions of one manifest may take. It is done on the event loop, before the function has an account.
 * The characters are
 * those that one trigger may have. Measured: 0.4 s for them, and 0.25 s for the instructions of the slowest pattern, `(?i)[\pL\pN\pS\pP]{1,990}`.
 */
export interface CompileBudget {
  /** UTF-16 units of all expressions. */
  characters: number;
  /** RE2 instructions of all constant patterns. */
  instructions: number;
}

/** Returns the budget of one manifest. */
export const compileBudget = (): CompileBudget => ({
  characters: mostConditions * longestExpression,
  instructions: 10_000,
});
