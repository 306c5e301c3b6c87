import { namespaces } from "../audit/ledger.ts";
import { admin } from "./release.ts";

/**
 * Grants the permissions that the functions of the image `recorders` need to the account that all of them use: the runtime's
 * account in that namespace.
 */
export async function grantRecorders(namespace: string): Promise<void> {
  const { objects, records } = namespaces;
  const allow = async (where: string, verbs: readonly string[]) => {
    const base = `/apis/rbac.authorization.k8s.io/v1/namespaces/${where}`;
    const metadata = { name: "recorders" };
    await admin.post(`${base}/roles`, { metadata, rules: [{ apiGroups: [""], resources: ["configmaps"], verbs }] });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "recorders" };
    const subjects = [{ kind: "ServiceAccount", name: "watchfire", namespace }];
    await admin.post(`${base}/rolebindings`, { metadata, roleRef, subjects });
  };
  await allow(objects, ["list", "watch", "get"]);
  await allow(records, ["create", "get"]);
}
