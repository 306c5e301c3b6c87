/** Name formats of Kubernetes (apimachinery `util/validation`). */

/** RFC 1123 label: names of functions, triggers and namespaces. At most 63 characters. */
export const dnsLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** RFC 1123 subdomain: names of most objects, and API groups. At most 253 characters. */
export const dnsSubdomain = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

/**
 * The name of any object (apimachinery `api/validation/path`): not `.` or `..`, and without `/` and `%`. Most kinds have
 * narrower rules, which are the API server's to apply. A lone surrogate is in no name, because it is no UTF-8. The API server
 * knows no longest name: most kinds have 253 characters at most, and RBAC's, which may be longer, far fewer than 1,024.
 */
export const objectName = /^(?!\.{1,2}$)[^/%\p{Cs}]{1,1024}$/u;

/**
 * apiVersion: `v1`, `apps/v1`, `my.domain/v1beta1`. A group's version may be any RFC 1035 label, such as `stable`; the core
 * group's has the form `v1`.
 */
export const apiVersion =
  /^(?:v[0-9][a-z0-9]{0,61}|[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)$/;

/**
 * Kind, such as `ConfigMap`. A definition's kind may be any RFC 1035 label, with capital letters too (apiextensions
 * `ValidateCustomResourceDefinitionNames`). An aggregated API server's is the name of a Go type, which may contain `_`.
 */
export const kind = /^[A-Za-z](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/;

const qualifiedPart = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** Whether a text is a label key: a name, optionally after a DNS subdomain and `/`. */
export function isLabelKey(key: string): boolean {
  const slash = key.indexOf("/");
  if (slash === -1) return qualifiedPart.test(key);
  return dnsSubdomain.test(key.slice(0, slash)) && qualifiedPart.test(key.slice(slash + 1));
}

/** Whether a text is a label value: empty, or up to 63 characters of letters, digits, `-`, `_` and `.`. */
export const isLabelValue = (value: string): boolean => value === "" || qualifiedPart.test(value);
