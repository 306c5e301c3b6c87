/**
 * Regenerates kubernetes.json, the embedded API server's data of the built-in kinds, from a running kube-apiserver:
 *
 *     KUBECONFIG=... node runtime/cluster/openapi/refresh.ts
 *
 * It contains the schemas that the served kinds use, without their prose, and the resources in discovery.
 * Run it by hand when the Kubernetes version changes; it needs `kubectl` on the PATH.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { z } from "zod";

/** The group-versions that the embedded cluster may serve. */
const groupVersions = [
  "v1",
  "admissionregistration.k8s.io/v1",
  "apiextensions.k8s.io/v1",
  "apiregistration.k8s.io/v1",
  "apps/v1",
  "authentication.k8s.io/v1",
  "authorization.k8s.io/v1",
  "autoscaling/v1",
  "autoscaling/v2",
  "batch/v1",
  "coordination.k8s.io/v1",
  "discovery.k8s.io/v1",
  "events.k8s.io/v1",
  "networking.k8s.io/v1",
  "policy/v1",
  "rbac.authorization.k8s.io/v1",
  "scheduling.k8s.io/v1",
  "storage.k8s.io/v1",
];
const refPrefix = "#/components/schemas/";

type Node = null | boolean | number | string | Node[] | { [key: string]: Node };
const node: z.ZodType<Node> = z.json();
const openApi = z.object({ components: z.object({ schemas: z.record(z.string(), node) }) });
const resourceList = z.object({
  resources: z.array(
    z.object({
      name: z.string(),
      singularName: z.string(),
      namespaced: z.boolean(),
      kind: z.string(),
      group: z.string().optional(),
      version: z.string().optional(),
      verbs: z.array(z.string()),
      shortNames: z.array(z.string()).optional(),
      categories: z.array(z.string()).optional(),
    }),
  ),
});

function get(path: string): unknown {
  return JSON.parse(execFileSync("kubectl", ["get", "--raw", path], { encoding: "utf8", maxBuffer: 1 << 28 }));
}

/**
 * Removes the prose from a schema. With `names`, the keys are field names, so a key `description` is a field and stays.
 */
function trim(value: Node, names: boolean): Node {
  if (Array.isArray(value)) return value.map((item) => trim(item, false));
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([key]) => names || (key !== "description" && key !== "example"));
  return Object.fromEntries(kept.map(([key, child]) => [key, trim(child, !names && key === "properties")]));
}

/** Collects the schema of that name and all schemas it refers to. */
function reach(name: string, from: Record<string, Node>, into: Record<string, Node>): void {
  const schema = from[name];
  if (schema === undefined || into[name] !== undefined) return;
  into[name] = trim(schema, false);
  for (const [, target] of JSON.stringify(into[name]).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
    if (target) reach(target, from, into);
  }
}

const reached: Record<string, Node> = {};
const resources: Record<string, z.infer<typeof resourceList>["resources"]> = {};
for (const groupVersion of groupVersions) {
  const root = groupVersion === "v1" ? "api/v1" : `apis/${groupVersion}`;
  const document = openApi.parse(get(`/openapi/v3/${root}`));
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    if (JSON.stringify(schema).includes('"x-kubernetes-group-version-kind"'))
      reach(name, document.components.schemas, reached);
  }
  resources[groupVersion] = resourceList.parse(get(`/${root}`)).resources;
}
const { gitVersion } = z.object({ gitVersion: z.string() }).parse(get("/version"));
const schemas = Object.fromEntries(Object.entries(reached).sort(([a], [b]) => (a < b ? -1 : 1)));
const lines = Object.entries(schemas).map(([name, schema]) => `${JSON.stringify(name)}:${JSON.stringify(schema)}`);
const text = `{"gitVersion":"${gitVersion}","resources":${JSON.stringify(resources)},"schemas":{\n${lines.join(",\n")}\n}}\n`;
writeFileSync(new URL("kubernetes.json", import.meta.url), text.replaceAll(refPrefix, "#/"));
process.stdout.write(`${gitVersion}: ${lines.length} schemas, ${text.length} characters\n`);
