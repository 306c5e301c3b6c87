import { builtInData, builtInSchemaName } from "../../runtime/cluster/schema/built-in.ts";
import type { Json } from "./objects.ts";

/** Objects that differ from a valid one in one field of their kind's schema, with each of these values. */
const texts = [
  ...[
    "",
    "x",
    "Bad_Name",
    "-a",
    "a.b",
    "a/b",
    "../a",
    "/a",
    " x ",
    "a".repeat(64),
    "a".repeat(254),
    "10.0.0.1",
    "fd00::1",
  ],
  ...["010.0.0.1", "10.0.0.0/8", "fd00::/64", "1", "ALL", "None", "http://x", "a=b", "é", "a,b", "a:b"],
];
const numbers = [-1, 0, 1, 3, 65_536, 2 ** 31 - 1];
const quantities = ["-1", "0", "1", "1500m", "1.5", "2Mi", "x", ""];
const keys = [
  ...["a", "Bad_ key", "a/b", "a/b/c", "", "hugepages-2Mi", "cpu", "memory", "ephemeral-storage", "example.com/gpu"],
  ...["kubernetes.io/x", "requests.cpu", "pods"],
];
const selector = { matchLabels: { a: "b" } };

/** Fields that an object on the way needs, so that the field in question decides. The last match comes last. */
const companions: readonly (readonly [place: RegExp, fields: Json])[] = [
  [/matchExpressions\.0$/, { key: "a", operator: "In", values: ["b"] }],
  [/matchFields\.0$/, { key: "metadata.name", operator: "In", values: ["b"] }],
  [/podAffinityTerm$|pod(Anti)?Affinity\.required\w*\.0$/, { topologyKey: "zone", labelSelector: selector }],
  [/Affinity\.preferred\w*\.0$/, { weight: 1 }],
  [/env\.0$/, { name: "A" }],
  [/(secretKeyRef|configMapKeyRef)$/, { name: "x", key: "y" }],
  [/resourceFieldRef$/, { resource: "limits.cpu", containerName: "c" }],
  [/dnsConfig\.options\.0$/, { name: "x" }],
  [/volumes\.0$/, { name: "d" }],
  [/resourceClaims\.0$/, { name: "x", resourceClaimName: "y" }],
  [/ontainers\.0$/, { name: "cc", image: "i" }],
  [/restartPolicyRules\.0$/, { action: "Restart", exitCodes: { operator: "In", values: [42] } }],
  [/containers\.0\.ports\.0$/, { containerPort: 80 }],
  [/volumeMounts\.0$/, { name: "d", mountPath: "/d" }],
  [/resizePolicy\.0$/, { resourceName: "cpu", restartPolicy: "NotRequired" }],
  [/httpHeaders\.0$/, { name: "a", value: "b" }],
  [/(httpGet|tcpSocket|grpc)$/, { port: 80 }],
  [/tolerations\.0$/, { operator: "Exists", key: "a" }],
  [
    /SpreadConstraints\.0$/,
    { maxSkew: 1, topologyKey: "z", whenUnsatisfiable: "DoNotSchedule", labelSelector: selector },
  ],
  [/(configMap|secret)\.items\.0$/, { key: "a", path: "b" }],
  [/downwardAPI\.items\.0$/, { path: "b" }],
  [/serviceAccountToken$/, { path: "a" }],
  [/volumeClaimTemplate$/, { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } }],
  [/sysctls\.0$/, { name: "kernel.shm_rmid_forced", value: "1" }],
  [/hostAliases\.0$/, { ip: "10.0.0.1", hostnames: ["a"] }],
  [/\.csi$/, { driver: "a.example" }],
  [/hostPath$/, { path: "/a" }],
  [/\.nfs$/, { server: "a", path: "/b" }],
  [/(awsElasticBlockStore|cinder|portworxVolume)$/, { volumeID: "a" }],
  [/azureDisk$/, { diskName: "a", diskURI: "https://a.example/b.vhd" }],
  [/azureFile$/, { secretName: "a", shareName: "b" }],
  [/cephfs$/, { monitors: ["a"] }],
  [/\.fc$/, { targetWWNs: ["a"], lun: 1 }],
  [/flexVolume$/, { driver: "a/b" }],
  [/gcePersistentDisk$/, { pdName: "a" }],
  [/gitRepo$/, { repository: "a" }],
  [/glusterfs$/, { endpoints: "a", path: "b" }],
  [/iscsi$/, { targetPortal: "a", iqn: "iqn.2026-01.example:a", lun: 1 }],
  [/photonPersistentDisk$/, { pdID: "a" }],
  [/quobyte$/, { registry: "a:1", volume: "b" }],
  [/rbd$/, { monitors: ["a"], image: "b" }],
  [/scaleIO$/, { gateway: "a", system: "b", volumeName: "c", secretRef: { name: "d" } }],
  [/storageos$/, { volumeName: "a" }],
  [/vsphereVolume$/, { volumePath: "a" }],
  [/podFailurePolicy\.rules\.0$/, { action: "Ignore", onExitCodes: { operator: "In", values: [3] } }],
  [/successPolicy\.rules\.0$/, { succeededCount: 1 }],
  [/onPodConditions\.0$/, { type: "A", status: "True" }],
  [/\.exec$/, { command: ["a"] }],
];

type Steps = readonly (string | number)[];

/** Every object that differs from `base` in one field of its kind's schema. */
export function* fieldCases(apiVersion: string, kind: string, base: Json): Generator<{ object: Json; change: string }> {
  const [group = "", version = ""] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const name = builtInSchemaName(group, version, kind);
  for (const [steps, value] of leaves({ $ref: `#/${name}` }, [], [])) {
    const isIdentity = steps.length === 0 || ["apiVersion", "kind", "metadata", "status"].includes(String(steps[0]));
    // The real server is started without privileged pods, as no cluster that runs pods is.
    if (isIdentity || steps.at(-1) === "privileged") continue;
    yield { object: put(base, steps, value), change: `${steps.join(".")} = ${JSON.stringify(value)?.slice(0, 40)}` };
  }
}

/** Places of a schema, each with the values to try. Recursion ends at a type that contains itself. */
function* leaves(schema: Json, steps: Steps, within: readonly string[]): Generator<[steps: Steps, value: unknown]> {
  const [reference] = (schema.allOf as Json[] | undefined) ?? [schema];
  const name = typeof reference?.$ref === "string" ? reference.$ref.slice(2) : undefined;
  if (name !== undefined && within.includes(name)) return;
  const own = name === undefined ? schema : (builtInData().schemas[name] as Json | undefined);
  if (!own) return;
  const inside = name === undefined ? within : [...within, name];
  const all = function* (values: readonly unknown[]): Generator<[Steps, unknown]> {
    for (const value of values) yield [steps, value];
  };
  if (name?.endsWith(".Quantity")) return yield* all(quantities);
  if (name?.endsWith(".IntOrString")) return yield* all([...numbers, ...texts.slice(0, 6), "10%", "101%"]);
  if (name && /\.(Micro)?Time$/.test(name)) return yield* all(["2026-01-01T00:00:00Z", "x", ""]);
  if (own.properties) {
    yield [steps, {}];
    for (const [field, child] of Object.entries(own.properties as Json))
      yield* leaves(child as Json, [...steps, field], inside);
  } else if (own.type === "array") {
    for (const [place, value] of leaves(own.items as Json, [...steps, 0], inside)) {
      yield [place, value];
      if (place.length === steps.length + 1 && typeof value !== "object") yield [steps, [value, value]];
    }
  } else if (own.additionalProperties) {
    for (const key of keys)
      for (const [place, value] of leaves(own.additionalProperties as Json, [...steps, key], inside))
        if (key === "a" || typeof value !== "string" || quantities.includes(value)) yield [place, value];
  } else if (own.type === "string") yield* all([...((own.enum as string[] | undefined) ?? []), ...texts]);
  else if (own.type === "integer" || own.type === "number") yield* all(numbers);
  else if (own.type === "boolean") yield* all([true, false]);
  else yield [steps, {}];
}

/** A copy of the object with a value at a place. Objects that are missing on the way are created with their companions. */
function put(base: Json, steps: Steps, value: unknown): Json {
  const object = structuredClone(base);
  let at: Record<string | number, unknown> = object;
  steps.forEach((step, index) => {
    if (index === steps.length - 1) {
      at[step] = value;
      return;
    }
    if (typeof at[step] !== "object" || at[step] === null) at[step] = created(steps, index);
    at = at[step] as typeof at;
  });
  return object;
}

function created(steps: Steps, index: number): Json | unknown[] {
  if (typeof steps[index + 1] === "number") return [];
  const place = steps.slice(0, index + 1).join(".");
  const fields = companions.filter(([pattern]) => pattern.test(place)).map(([, each]) => structuredClone(each));
  const made = Object.assign({}, ...fields) as Json;
  // A rule looks at exit codes or at conditions.
  if (steps[index + 1] === "onPodConditions") delete made.onExitCodes;
  return made;
}
