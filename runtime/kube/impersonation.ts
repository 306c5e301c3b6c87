import { z } from "zod";
import { WatchfireError } from "../errors.ts";

/** What a kubeconfig's user says of whom to act as, in the file's own words. */
export const impersonationSchema = z.looseObject({
  as: z.string().optional(),
  "as-uid": z.string().optional(),
  "as-groups": z.array(z.string()).nullish(),
  "as-user-extra": z.record(z.string(), z.array(z.string())).nullish(),
});

export type Impersonation = z.infer<typeof impersonationSchema>;

/**
 * The headers of an impersonation, beside `Impersonate-User`. Without them we would act as the named user but not in its
 * groups, with other rights than kubectl has by the same file. Throws WF_KUBE_CONFIG for groups, uid or extra without a
 * user, which an API server refuses.
 */
export function impersonationHeaders(user: Impersonation): Record<string, string | string[]> {
  const { as, "as-uid": uid, "as-groups": groups, "as-user-extra": extra } = user;
  const headers: Record<string, string | string[]> = {};
  if (uid) headers["impersonate-uid"] = uid;
  if (groups && groups.length > 0) headers["impersonate-group"] = groups;
  for (const [key, values] of Object.entries(extra ?? {})) {
    headers[`impersonate-extra-${escapedKey(key)}`] = values;
  }
  if (!as && Object.keys(headers).length > 0) {
    throw new WatchfireError("WF_KUBE_CONFIG", {
      what: "the user has as-uid, as-groups or as-user-extra without as",
      hint: "name the user to act as with `as`",
    });
  }
  return headers;
}

/** A header's name holds few characters: the others are percent-encoded, as client-go does (`transport/round_trippers.go`). */
function escapedKey(key: string): string {
  const plain = /[!#$&'*+.^_`|~0-9A-Za-z-]/;
  return [...Buffer.from(key.toLowerCase())]
    .map((byte) => String.fromCharCode(byte))
    .map((char) => (plain.test(char) ? char : `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`))
    .join("");
}
