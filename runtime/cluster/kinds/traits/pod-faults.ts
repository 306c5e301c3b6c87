import { at, type Fields, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { nameFaults, qualifiedNameFaults } from "../names.ts";
import { items } from "./pod-spec.ts";
import { choiceFaults, isAbove, negativeFaults, portNumberFaults, protocols } from "./value-faults.ts";

const pullPolicies = ["Always", "IfNotPresent", "Never"];
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const probes = ["livenessProbe", "readinessProbe", "startupProbe"];
const probeActions = ["exec", "httpGet", "tcpSocket", "grpc"];
const containerResources = ["cpu", "memory", "ephemeral-storage"];

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
  const names = new Set<unknown>();
  return [
    ...volumeFaults(spec, path),
    ...["containers", "initContainers"].flatMap((list) =>
      items(spec, list).flatMap((container, index) =>
        containerFaults(container, `${path}.${list}[${index}]`, { volumes, names }),
      ),
    ),
    ...(restart ? choiceFaults(spec, path, "restartPolicy", restart) : []),
    ...choiceFaults(spec, path, "dnsPolicy", dnsPolicies),
  ];
}

/** Names within one pod. */
interface PodNames {
  readonly volumes: ReadonlySet<unknown>;
  /** Containers so far. */
  readonly names: Set<unknown>;
}

function volumeFaults(spec: Fields, path: string): FieldFault[] {
  const names = new Set<unknown>();
  return items(spec, "volumes").flatMap(({ name }, index) => {
    const where = `${path}.volumes[${index}].name`;
    const faults = names.has(name) ? [fault.duplicate(where, name)] : labelFaults(name, where);
    names.add(name);
    return faults;
  });
}

function labelFaults(name: unknown, path: string): FieldFault[] {
  if (typeof name !== "string" || name === "") return [fault.required(path)];
  return nameFaults("label", name).map((text) => fault.invalid(path, name, text));
}

function containerFaults(container: Fields, path: string, { volumes, names }: PodNames): FieldFault[] {
  const { name, image } = container;
  const isKnown = names.has(name);
  names.add(name);
  return [
    ...(isKnown ? [fault.duplicate(`${path}.name`, name)] : labelFaults(name, `${path}.name`)),
    ...(typeof image === "string" && image !== "" ? [] : [fault.required(`${path}.image`)]),
    ...choiceFaults(container, path, "imagePullPolicy", pullPolicies),
    ...items(container, "ports").flatMap((port, index) => portFaults(port, `${path}.ports[${index}]`)),
    ...items(container, "env").flatMap((variable, index) => variableFaults(variable, `${path}.env[${index}]`)),
    ...mountFaults(container, path, volumes),
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

function resourceFaults(resources: unknown, path: string): FieldFault[] {
  if (!isFields(resources)) return [];
  const limits = isFields(resources.limits) ? resources.limits : {};
  const requests = isFields(resources.requests) ? resources.requests : {};
  return [
    ...Object.entries(limits).flatMap(([name, value]) => amountFaults(name, value, `${path}.limits[${name}]`)),
    ...Object.entries(requests).flatMap(([name, value]) => [
      ...amountFaults(name, value, `${path}.requests[${name}]`),
      ...(isAbove(value, limits[name])
        ? [
            fault.invalid(
              `${path}.requests`,
              value,
              `must be less than or equal to ${name} limit of ${String(limits[name])}`,
            ),
          ]
        : []),
    ]),
  ];
}

function amountFaults(name: string, value: unknown, path: string): FieldFault[] {
  const isStandard = containerResources.includes(name) || name.startsWith("hugepages-");
  const faults = resourceNameFaults(name, path, isStandard);
  if (!name.includes("/") && !isStandard)
    faults.push(fault.invalid(path, name, "must be a standard resource for containers"));
  if (isAbove("0", value)) faults.push(fault.invalid(path, value, "must be greater than or equal to 0"));
  return faults;
}

/** Faults of a resource's name, such as `cpu` or `example.com/gpu`. */
export function resourceNameFaults(name: string, path: string, isStandard: boolean): FieldFault[] {
  const faults = qualifiedNameFaults(name).map((text) => fault.invalid(path, name, text));
  if (faults.length === 0 && !name.includes("/") && !isStandard)
    faults.push(fault.invalid(path, name, "must be a standard resource type or fully qualified"));
  return faults;
}
