import type { KubeconfigUser } from "./kubeconfig-file.ts";

/** The user to impersonate. */
export interface Impersonation {
  readonly user: string;
  /** Empty if absent. */
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Returns the impersonation of a kubeconfig's user; `undefined` for a user without impersonation. */
export function impersonationOf(user: KubeconfigUser): Impersonation | undefined {
  const { as, "as-uid": uid, "as-groups": groups, "as-user-extra": extra } = user;
  return as ? { user: as, uid, groups, extra } : undefined;
}

/**
 * Returns the headers of an impersonation (`ImpersonatingRoundTripper`). Without groups, uid and extra, the runtime would act
 * with other rights than kubectl does with the same file.
 */
export function impersonationHeaders({ user, uid, groups, extra }: Impersonation): Record<string, string | string[]> {
  return {
    "impersonate-user": user,
    ...(uid && { "impersonate-uid": uid }),
    ...(groups.length > 0 && { "impersonate-group": [...groups] }),
    ...Object.fromEntries(
      Object.entries(extra).map(([key, values]) => [`impersonate-extra-${escapedKey(key)}`, [...values]]),
    ),
  };
}

/** Percent-encodes characters that a header name must not contain, as client-go does (`transport/round_trippers.go`). */
function escapedKey(key: string): string {
  const plain = /[!#$&'*+.^_`|~0-9A-Za-z-]/;
  return [...Buffer.from(key.toLowerCase())]
    .map((byte) => String.fromCharCode(byte))
    .map((char) => (plain.test(char) ? char : `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`))
    .join("");
}
