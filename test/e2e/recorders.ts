import { namespaces } from "../audit/ledger.ts";
import { admin } from "./release.ts";

/** What the functions of the image `recorders` may do, for the one account that all of them act as: the runtime's in that namespace. */
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
