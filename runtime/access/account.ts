import { createHash } from "node:crypto";

/** Default name of the runtime's ServiceAccount. */
export const runtimeAccount = "watchfire";

/** Maximum length of the names of ServiceAccounts and most other objects (apimachinery `validation.IsDNS1123Subdomain`). */
const nameLimit = 253;

/** Returns the name of a function's ServiceAccount, in the runtime's namespace: `watchfire-copy-labels`. */
export function functionAccount(account: string, functionName: string): string {
  return boundedName(`${account}-${functionName}`, nameLimit);
}

/** Returns the name, or its beginning with a hash of the whole if it is longer than `limit`. Deterministic. */
export function boundedName(name: string, limit: number): string {
  if (name.length <= limit) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 10);
  return `${name.slice(0, limit - hash.length - 1).replace(/[-.]+$/, "")}-${hash}`;
}
