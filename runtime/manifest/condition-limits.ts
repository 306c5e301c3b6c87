/** Most conditions of one trigger, as in Kubernetes for a webhook or a policy (pkg/apis/admissionregistration/validation). */
export const mostConditions = 64;

/** Longest expression of a condition, in UTF-16 units. */
export const longestExpression = 4096;
