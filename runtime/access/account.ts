import { createHash } from "node:crypto";

/** Default name of the runtime's ServiceAccount. */
export const runtimeAccount = "watchfire";

/** Maximum length of the names of ServiceAccounts and most other objects (apimachinery `validation.IsDNS1123Subdomain`). */
const nameLimit = 253;

/** Returns the name of a function's ServiceAccount, in the namespace of its set: `watchfire-copy-labels`. */
export function functionAccount(account: string, functionName: string): string {
  return boundedName(`${account}-${functionName}`, nameLimit);
}

/** A function by the name in its manifest, and the namespace of its set; `undefined`: the runtime's own. */
interface FunctionPlace {
  readonly name: string;
  readonly namespace: string | undefined;
}

/**
 * Returns the name in the runtime of a function of another namespace's set: `greet.team-a`. Neither part contains a dot, so that
 * the names of two namespaces never meet: not in checkpoints, nor in dead letters, nor in `ctx.state`.
 */
export const qualifiedName = (name: string, namespace: string): string => `${name}.${namespace}`;

/** Returns the parts of a function's name in the runtime. */
export function placeOfFunction(functionName: string): FunctionPlace {
  const dot = functionName.indexOf(".");
  if (dot < 0) return { name: functionName, namespace: undefined };
  return { name: functionName.slice(0, dot), namespace: functionName.slice(dot + 1) };
}

/** Returns the name, or its beginning with a hash of the whole if it is longer than `limit`. Deterministic. */
export function boundedName(name: string, limit: number): string {
  if (name.length <= limit) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 10);
  return `${name.slice(0, limit - hash.length - 1).replace(/[-.]+$/, "")}-${hash}`;
}
