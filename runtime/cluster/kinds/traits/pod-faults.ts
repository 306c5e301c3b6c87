import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { labelFaults, nameFaults, qualifiedNameFaults } from "../names.ts";
import { ruleFaults } from "./field-rules.ts";
import { podRules } from "./pod-rules.ts";
import { items } from "./pod-spec.ts";
import { profileFaults } from "./profile-annotations.ts";
import { resourceFaults } from "./resource-rules.ts";
import { choiceFaults, negativeFaults, portNumberFaults, protocols } from "./value-faults.ts";

const pullPolicies = ["Always", "IfNotPresent", "Never"];
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const probes = ["livenessProbe", "readinessProbe", "startupProbe"];
const probeActions = ["exec", "httpGet", "tcpSocket", "grpc"];

/**
 * Faults of a pod spec that its schema does not express; `restart` lists the restart policies that its kind takes, and
 * `claims` the volumes that it has from elsewhere.
 */
export function podSpecFaults(
  object: unknown,
  path: string,
  { restart, claims = [] }: { readonly restart?: readonly string[]; readonly claims?: readonly unknown[] } = {},
): FieldFault[] {
  const spec = at(object, path);
  if (!isFields(spec)) return [fault.required(`${path}.containers`)];
  const containers = items(spec, "containers");
  if (containers.length === 0) return [fault.required(`${path}.containers`)];
  const volumes = new Set([...items(spec, "volumes").map(({ name }) => name), ...claims]);
  const isEmptyFolder = (volume: Fields) => isFields(volume.emptyDir);
  const emptyFolders = new Set(
    items(spec, "volumes")
      .filter(isEmptyFolder)
      .map(({ name }) => name),
  );
  const resourceClaims = new Set(items(spec, "resourceClaims").map(({ name }) => name));
  const names = new Set<unknown>();
  return [
    ...volumeFaults(spec, path),
    ...["containers", "initContainers"].flatMap((list) =>
      items(spec, list).flatMap((container, index) =>
        containerFaults(container, `${path}.${list}[${index}]`, { volumes, emptyFolders, resourceClaims, names }),
      ),
    ),
    ...(restart ? choiceFaults(spec, path, "restartPolicy", restart) : []),
    ...choiceFaults(spec, path, "dnsPolicy", dnsPolicies),
    ...ruleFaults(podRules, spec, path),
  ];
}

/** Faults of a template of pods at a path: of its labels, of the names of its annotations, and of its spec. */
export function templateFaults(
  object: unknown,
  path: string,
  options?: Parameters<typeof podSpecFaults>[2],
): FieldFault[] {
  const { labels, annotations } = fieldsOf(at(object, `${path}.metadata`));
  return [
    // The real server leaves `metadata` out of these paths.
    ...labelFaults(fieldsOf(labels) as Record<string, string>, `${path}.labels`),
    ...Object.keys(fieldsOf(annotations)).flatMap((key) =>
      qualifiedNameFaults(key.toLowerCase()).map((text) => fault.invalid(`${path}.annotations`, key, text)),
    ),
    ...podSpecFaults(object, `${path}.spec`, options),
    ...profileFaults(object, `${path}.metadata`, `${path}.spec`).map(withoutMetadata),
    ...(at(object, `${path}.spec.ephemeralContainers`) === undefined
      ? []
      : [fault.forbidden(`${path}.spec.ephemeralContainers`, "ephemeral containers not allowed in pod template")]),
  ];
}

const withoutMetadata = (one: FieldFault): FieldFault => ({ ...one, field: one.field.replace(".metadata.", ".") });

/** Names within one pod. */
interface PodNames {
  readonly volumes: ReadonlySet<unknown>;
  readonly resourceClaims: ReadonlySet<unknown>;
  /** The volumes that are an emptyDir. */
  readonly emptyFolders: ReadonlySet<unknown>;
  /** Containers so far. */
  readonly names: Set<unknown>;
}

function volumeFaults(spec: Fields, path: string): FieldFault[] {
  const names = new Set<unknown>();
  return items(spec, "volumes").flatMap(({ name }, index) => {
    const where = `${path}.volumes[${index}].name`;
    const faults = names.has(name) ? [fault.duplicate(where, name)] : labelNameFaults(name, where);
    names.add(name);
    return faults;
  });
}

function labelNameFaults(name: unknown, path: string): FieldFault[] {
  if (typeof name !== "string" || name === "") return [fault.required(path)];
  return nameFaults("label", name).map((text) => fault.invalid(path, name, text));
}

function containerFaults(container: Fields, path: string, within: PodNames): FieldFault[] {
  const { volumes, names } = within;
  const { name, image } = container;
  const isKnown = names.has(name);
  names.add(name);
  return [
    ...(isKnown ? [fault.duplicate(`${path}.name`, name)] : labelNameFaults(name, `${path}.name`)),
    ...(typeof image === "string" && image !== "" ? [] : [fault.required(`${path}.image`)]),
    ...choiceFaults(container, path, "imagePullPolicy", pullPolicies),
    ...items(container, "ports").flatMap((port, index) => portFaults(port, `${path}.ports[${index}]`)),
    ...items(container, "env").flatMap((variable, index) => variableFaults(variable, `${path}.env[${index}]`)),
    ...mountFaults(container, path, volumes),
    ...nameFaultsOf(container, path, within),
    ...probes.flatMap((probe) => probeFaults(container[probe], `${path}.${probe}`, probe)),
    ...resourceFaults(container.resources, `${path}.resources`),
  ];
}

function portFaults(port: Fields, path: string): FieldFault[] {
  const { containerPort, hostPort } = port;
  return [
    ...(containerPort === undefined || containerPort === 0
      ? [fault.required(`${path}.containerPort`)]
      : portNumberFaults(containerPort, `${path}.containerPort`)),
    ...(hostPort === undefined || hostPort === 0 ? [] : portNumberFaults(hostPort, `${path}.hostPort`)),
    ...choiceFaults(port, path, "protocol", protocols),
  ];
}

function variableFaults({ name, value, valueFrom }: Fields, path: string): FieldFault[] {
  if (typeof name !== "string" || name === "") return [fault.required(`${path}.name`)];
  return isFields(valueFrom) && typeof value === "string" && value !== ""
    ? [fault.invalid(`${path}.valueFrom`, "", "may not be specified when `value` is not empty")]
    : [];
}

/** Faults of the names of a container's devices and claims, which the pod must have. */
function nameFaultsOf(
  container: Fields,
  path: string,
  { volumes, resourceClaims, emptyFolders }: PodNames,
): FieldFault[] {
  return [
    ...items(container, "volumeDevices").flatMap(({ name }, index) =>
      name && !volumes.has(name) ? [fault.notFound(`${path}.volumeDevices[${index}].name`, name)] : [],
    ),
    ...items(container, "env").flatMap((variable, index) => {
      const { volumeName } = fieldsOf(at(variable, "valueFrom.fileKeyRef"));
      const where = `${path}.env[${index}].valueFrom.fileKeyRef.volumeName`;
      if (!volumeName) return [];
      if (!volumes.has(volumeName)) return [fault.notFound(where, volumeName)];
      return emptyFolders.has(volumeName)
        ? []
        : [fault.invalid(where, volumeName, "referenced volume must be of type emptyDir")];
    }),
    ...items(fieldsOf(container.resources), "claims").flatMap(({ name, request }, index, all) => {
      const where = `${path}.resources.claims[${index}]`;
      if (!resourceClaims.has(name)) return [fault.notFound(where, name ?? "")];
      const isKnown = all.slice(0, index).some((one) => one.name === name && one.request === request);
      return isKnown ? [fault.duplicate(where, request ? `${name}/${request}` : name)] : [];
    }),
  ];
}

function mountFaults(container: Fields, path: string, volumes: ReadonlySet<unknown>): FieldFault[] {
  const places = new Set<unknown>();
  return items(container, "volumeMounts").flatMap(({ name, mountPath }, index) => {
    const where = `${path}.volumeMounts[${index}]`;
    const faults: FieldFault[] = [];
    if (!name) faults.push(fault.required(`${where}.name`));
    else if (!volumes.has(name)) faults.push(fault.notFound(`${where}.name`, name));
    if (!mountPath) faults.push(fault.required(`${where}.mountPath`));
    else if (places.has(mountPath)) faults.push(fault.invalid(`${where}.mountPath`, mountPath, "must be unique"));
    places.add(mountPath);
    return faults;
  });
}

function probeFaults(probe: unknown, path: string, name: string): FieldFault[] {
  if (!isFields(probe)) return [];
  const actions = probeActions.filter((action) => isFields(probe[action]));
  const faults = actions.length === 0 ? [fault.required(path, "must specify a handler type")] : [];
  for (const action of actions.slice(1))
    faults.push(fault.forbidden(`${path}.${action}`, "may not specify more than 1 handler type"));
  if (name !== "readinessProbe" && typeof probe.successThreshold === "number" && probe.successThreshold !== 1)
    faults.push(fault.invalid(`${path}.successThreshold`, probe.successThreshold, "must be 1"));
  const durations = ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold"];
  faults.push(...negativeFaults(probe, path, ...durations));
  return faults;
}
