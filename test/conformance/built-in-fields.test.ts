// The verdicts on objects of built-in kinds and on definitions that differ from a valid object in one field. Each line of
// verdicts.jsonl has a kind, the object's fields, and what is wrong with them: the beginning of a cause; "400" if they cannot be
// read; "" if only the verdict is compared; nothing if they are accepted.
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { admin, createNamespace } from "../target/fixture.ts";

type Verdict = readonly [kind: string, fields: object, fault?: string];

const verdicts = readFileSync(new URL("verdicts.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Verdict);

const resources: Readonly<Record<string, readonly [apiVersion: string, plural: string]>> = {
  ConfigMap: ["v1", "configmaps"],
  CronJob: ["batch/v1", "cronjobs"],
  CustomResourceDefinition: ["apiextensions.k8s.io/v1", "customresourcedefinitions"],
  DaemonSet: ["apps/v1", "daemonsets"],
  Deployment: ["apps/v1", "deployments"],
  HorizontalPodAutoscaler: ["autoscaling/v2", "horizontalpodautoscalers"],
  Ingress: ["networking.k8s.io/v1", "ingresses"],
  Job: ["batch/v1", "jobs"],
  Lease: ["coordination.k8s.io/v1", "leases"],
  LimitRange: ["v1", "limitranges"],
  NetworkPolicy: ["networking.k8s.io/v1", "networkpolicies"],
  PersistentVolumeClaim: ["v1", "persistentvolumeclaims"],
  Pod: ["v1", "pods"],
  PodDisruptionBudget: ["policy/v1", "poddisruptionbudgets"],
  ReplicaSet: ["apps/v1", "replicasets"],
  ResourceQuota: ["v1", "resourcequotas"],
  Role: ["rbac.authorization.k8s.io/v1", "roles"],
  RoleBinding: ["rbac.authorization.k8s.io/v1", "rolebindings"],
  Secret: ["v1", "secrets"],
  Service: ["v1", "services"],
  ServiceAccount: ["v1", "serviceaccounts"],
  StatefulSet: ["apps/v1", "statefulsets"],
};

let namespace: string;
beforeAll(async () => {
  namespace = await createNamespace();
});

/** Creates an object as a dry run. Returns its causes if it is refused. */
async function causesOf(kind: string, fields: object): Promise<readonly string[] | undefined> {
  const [apiVersion, plural] = resources[kind] ?? ["", ""];
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  const where = kind === "CustomResourceDefinition" ? root : `${root}/namespaces/${namespace}`;
  const body = { apiVersion, kind, metadata: { name: "a" }, ...fields };
  const reply = await admin.reply("POST", `${where}/${plural}`, { query: { dryRun: "All" }, body });
  if (reply.status < 300) return undefined;
  const causes = (reply.body.details?.causes ?? []).map((cause: Body) => `${cause.field}: ${cause.message}`);
  return [String(reply.status), ...causes];
}

const kinds = [...new Set(verdicts.map(([kind]) => kind))];

test.each(kinds)("a %s is refused for the field that is wrong, and accepted without it", async (kind) => {
  const differences: unknown[] = [];
  for (const [, fields, fault] of verdicts.filter(([each]) => each === kind)) {
    const causes = await causesOf(kind, fields);
    const isExpected = fault === undefined ? !causes : causes?.some((cause) => cause.startsWith(fault));
    if (!isExpected) differences.push({ fields: JSON.stringify(fields), fault, causes });
  }
  expect(differences).toEqual([]);
});
