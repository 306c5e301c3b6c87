/** Conditions of one trigger: Kubernetes has as many for a webhook or a policy, pkg/apis/admissionregistration/validation. */
export const mostConditions = 64;

/** Longest expression of a condition, in UTF-16 units. */
export const longestExpression = 4096;
