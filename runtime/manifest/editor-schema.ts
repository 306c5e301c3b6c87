import { fileURLToPath } from "node:url";
import { builtInTable } from "../kube/built-in-kinds.ts";
import { type JsonSchema, jsonSchema } from "./json-schema.ts";

/** The schema for editors, which is committed and published. */
export const schemaFile = fileURLToPath(new URL("function.schema.json", import.meta.url));

const sorted = (values: readonly string[]): string[] => [...new Set(values)].sort();

const apiVersions = sorted(Object.keys(builtInTable));
const kinds = sorted(Object.values(builtInTable).flatMap((each) => Object.keys(each)));
const groups = sorted(apiVersions.map((each) => (each.includes("/") ? (each.split("/")[0] ?? "") : "")));
const plurals = sorted(Object.values(builtInTable).flatMap((each) => Object.values(each).map(([plural]) => plural)));

/** A manifest that an editor inserts as a whole. */
const manifest = {
  apiVersion: "watchfire.dev/v1alpha1",
  kind: "Function",
  metadata: { name: "greet" },
  spec: {
    handler: "./handler.ts",
    triggers: [{ watch: { apiVersion: "v1", kind: "ConfigMap", labelSelector: { matchLabels: { greet: "true" } } } }],
    permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "patch"] }],
  },
};

/**
 * Examples of fields, which editors suggest, by the end of a field's path. The kinds are those of Kubernetes 1.36; any other served
 * kind is as valid.
 */
const examples: readonly (readonly [place: RegExp, values: readonly unknown[]])[] = [
  [/^$/, [manifest]],
  [/\.(?:watch|owner|reads\[\])\.apiVersion$/, apiVersions],
  [/\.(?:watch|owner|reads\[\])\.kind$/, kinds],
  [/\.handler$/, ["./handler.ts"]],
  [/\.matchNames\[\]$/, ["default"]],
  [/\.matchLabels$/, [{ app: "web" }]],
  [/\.fieldSelector$/, ["metadata.name=web", "status.phase=Failed"]],
  [/\.changedFields\[\]$/, [".spec", ".data", ".metadata.labels"]],
  [/\.matchConditions\[\]\.expression$/, ["object.status.phase == 'Failed'", "object.spec != oldObject.spec"]],
  [/\.cron$/, ["0 3 * * *", "*/15 * * * *"]],
  [/\.timeZone$/, ["Etc/UTC", "Europe/Berlin"]],
  [/\.(?:every|resync)$/, ["10m", "1h"]],
  [/\.(?:jitter|debounce|maxWait|timeout|initialDelay|maxDelay)$/, ["5s", "1m"]],
  [/\.key\.expression$/, ["object.metadata.labels['shop']"]],
  [/\.indexes\[\]\.field$/, [".spec.nodeName", ".metadata.ownerReferences[*].uid"]],
  [/\.permissions\[\]\.apiGroups\[\]$/, groups],
  [/\.permissions\[\]\.resources\[\]$/, plurals],
  [/\.resources\.(?:memory|cache)$/, ["64Mi", "256Mi"]],
  [/\.cpuPerEvent$/, ["500ms", "2s"]],
  [/\.egress\[\]\.host$/, ["hooks.slack.com"]],
];

/** Returns a copy of the manifest's schema with the examples of its fields. */
function withExamples(schema: JsonSchema, path = ""): JsonSchema {
  const values = examples.find(([place]) => place.test(path))?.[1];
  const { properties, items } = schema;
  const children = Object.entries(properties ?? {}).map(([name, child]) => [
    name,
    withExamples(child, `${path}.${name}`),
  ]);
  return {
    ...schema,
    ...(properties && { properties: Object.fromEntries(children) }),
    ...(items && { items: withExamples(items, `${path}[]`) }),
    ...(values && { examples: values }),
  };
}

/** Returns the schema as it is committed. */
export const renderSchema = (): string => `${JSON.stringify(withExamples(jsonSchema()), null, 2)}\n`;
