/** Who makes a request. */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Members may do everything, without asking RBAC. */
export const mastersGroup = "system:masters";
export const authenticatedGroup = "system:authenticated";
const unauthenticatedGroup = "system:unauthenticated";

/** The holder of the cluster's own kubeconfig. */
export const admin: User = { name: "kubernetes-admin", groups: [mastersGroup, authenticatedGroup], extra: {} };

/** A request without credentials. */
export const anonymous: User = { name: "system:anonymous", groups: [unauthenticatedGroup], extra: {} };

/** The server's own controllers. */
export const controllerUser: User = {
  name: "system:kube-controller-manager",
  groups: [mastersGroup, authenticatedGroup],
  extra: {},
};

/** A ServiceAccount, as RBAC knows it. */
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
