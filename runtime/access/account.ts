import { createHash } from "node:crypto";

/** The ServiceAccount that the runtime runs as, where none is named. */
export const runtimeAccount = "watchfire";

/** Of a ServiceAccount's and of most objects' names (apimachinery `validation.IsDNS1123Subdomain`). */
const nameLimit = 253;

/** The name of a function's ServiceAccount, in the runtime's namespace: `watchfire-copy-labels`. */
export function functionAccount(account: string, functionName: string): string {
  return boundedName(`${account}-${functionName}`, nameLimit);
}

/** The name as it is, or where it is longer than `limit` its beginning and a hash of the whole: the same for the same. */
export function boundedName(name: string, limit: number): string {
  if (name.length <= limit) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 10);
  return `${name.slice(0, limit - hash.length - 1).replace(/[-.]+$/, "")}-${hash}`;
}
