/** The authenticated user of a request. */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Group whose members may do everything, without a check by RBAC. */
export const mastersGroup = "system:masters";
export const authenticatedGroup = "system:authenticated";
const unauthenticatedGroup = "system:unauthenticated";

/** The user of the cluster's generated kubeconfig. */
export const admin: User = { name: "kubernetes-admin", groups: [mastersGroup, authenticatedGroup], extra: {} };

/** The user of a request without credentials. */
export const anonymous: User = { name: "system:anonymous", groups: [unauthenticatedGroup], extra: {} };

/** The user that the built-in controllers act as. */
export const controllerUser: User = {
  name: "system:kube-controller-manager",
  groups: [mastersGroup, authenticatedGroup],
  extra: {},
};

/** A ServiceAccount as a user: its name and groups as RBAC matches them. */
export function serviceAccountUser(
  namespace: string,
  name: string,
  uid: string,
  extra: Record<string, readonly string[]> = {},
): User {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    uid,
    groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, authenticatedGroup],
    extra,
  };
}
