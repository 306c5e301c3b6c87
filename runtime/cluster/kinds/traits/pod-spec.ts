import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";

/** Sets a field if it has no value yet. */
export function otherwise(fields: Fields, name: string, value: unknown): void {
  if (fields[name] === undefined || fields[name] === null) fields[name] = value;
}

/** Sets a field of text if it has no value yet. Go does not distinguish an empty text, unless the field is a pointer. */
export function defaultText(fields: Fields, name: string, value: string): void {
  if (fields[name] === "") delete fields[name];
  otherwise(fields, name, value);
}

/** Returns the object in a field, and creates it if it is missing. */
export function made(fields: Fields, name: string): Fields {
  const value = fields[name];
  if (isFields(value)) return value;
  const fresh: Fields = {};
  fields[name] = fresh;
  return fresh;
}

/** The objects in an array field. */
export function items(fields: Fields, name: string): Fields[] {
  const value = fields[name];
  return Array.isArray(value) ? value.filter(isFields) : [];
}

/** All containers of a pod's spec, each with its path. */
export function allContainers(spec: Fields, path: string): (readonly [container: Fields, path: string])[] {
  return ["initContainers", "containers"].flatMap((list) =>
    items(spec, list).map((container, index) => [container, `${path}.${list}[${index}]`] as const),
  );
}

const probes = ["livenessProbe", "readinessProbe", "startupProbe"];

/** Fills in the request of a probe or a lifecycle hook. */
function defaultAction({ httpGet }: Fields): void {
  if (!isFields(httpGet)) return;
  defaultText(httpGet, "path", "/");
  defaultText(httpGet, "scheme", "HTTP");
}

/** An image that the real server can read. It takes another one to have no tag at all. */
const imageName =
  /^([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:\d+)?\/)?[a-z0-9]+([._-]+[a-z0-9]+)*(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[\w.-]+)?$/;

function defaultContainer(container: Fields): void {
  otherwise(container, "resources", {});
  defaultText(container, "terminationMessagePath", "/dev/termination-log");
  defaultText(container, "terminationMessagePolicy", "File");
  defaultText(container, "imagePullPolicy", isPulledAlways(container.image) ? "Always" : "IfNotPresent");
  for (const port of items(container, "ports")) defaultText(port, "protocol", "TCP");
  for (const name of probes) {
    const probe = container[name];
    if (!isFields(probe)) continue;
    otherwise(probe, "timeoutSeconds", 1);
    otherwise(probe, "periodSeconds", 10);
    otherwise(probe, "successThreshold", 1);
    otherwise(probe, "failureThreshold", 3);
    defaultAction(probe);
  }
  // The real server has this field only behind a feature gate.
  const { lifecycle } = container;
  if (isFields(lifecycle) && lifecycle.stopSignal !== undefined) {
    delete lifecycle.stopSignal;
    if (Object.keys(lifecycle).length === 0) delete container.lifecycle;
  }
  for (const hook of ["postStart", "preStop"]) {
    const action = at(container, `lifecycle.${hook}`);
    if (isFields(action)) defaultAction(action);
  }
  for (const variable of items(container, "env")) {
    const from = at(variable, "valueFrom.fieldRef");
    if (isFields(from)) otherwise(from, "apiVersion", "v1");
    defaultDivisor(at(variable, "valueFrom.resourceFieldRef"));
  }
}

function defaultDivisor(amount: unknown): void {
  if (isFields(amount)) otherwise(amount, "divisor", "0");
}

/** True if a node pulls the image each time. */
function isPulledAlways(name: unknown): boolean {
  const image = String(name ?? "");
  const tag = image.includes("@") ? "digest" : (/:([^/]+)$/.exec(image)?.[1] ?? "latest");
  return tag === "latest" && imageName.test(image);
}

/** Default mode of a projected file, 0644. */
const fileMode = 420;

function defaultVolume(volume: Fields): void {
  if (Object.keys(volume).length === 1) volume.emptyDir = {};
  for (const source of ["configMap", "secret", "projected", "downwardAPI"])
    if (isFields(volume[source])) otherwise(volume[source], "defaultMode", fileMode);
  // The real server has these two only behind feature gates.
  for (const source of items(fieldsOf(volume.projected), "sources")) {
    for (const name of ["clusterTrustBundle", "podCertificate"]) delete source[name];
    if (isFields(source.serviceAccountToken)) otherwise(source.serviceAccountToken, "expirationSeconds", 3600);
    for (const file of items(fieldsOf(source.downwardAPI), "items")) defaultDivisor(file.resourceFieldRef);
  }
  for (const file of items(fieldsOf(volume.downwardAPI), "items")) defaultDivisor(file.resourceFieldRef);
  const { image } = volume;
  if (isFields(image)) defaultText(image, "pullPolicy", isPulledAlways(image.reference) ? "Always" : "IfNotPresent");
  const claim = at(volume, "ephemeral.volumeClaimTemplate.spec");
  if (isFields(claim)) otherwise(claim, "volumeMode", "Filesystem");
  if (isFields(volume.hostPath)) otherwise(volume.hostPath, "type", "");
}

/** Sets a pod's missing requests to its limits. Not called for pod templates. */
export function defaultRequests(spec: Fields): void {
  for (const list of ["initContainers", "containers"])
    for (const container of items(spec, list)) {
      const resources = made(container, "resources");
      if (isFields(resources.limits)) resources.requests = { ...resources.limits, ...fieldsOf(resources.requests) };
    }
}

/** Fills in kube-apiserver's defaults of a pod spec (`pkg/apis/core/v1/defaults.go`). */
export function defaultPodSpec(spec: Fields): void {
  defaultText(spec, "restartPolicy", "Always");
  otherwise(spec, "terminationGracePeriodSeconds", 30);
  defaultText(spec, "dnsPolicy", "ClusterFirst");
  otherwise(spec, "securityContext", {});
  defaultText(spec, "schedulerName", "default-scheduler");
  // The real server has it only behind a feature gate.
  delete spec.schedulingGroup;
  for (const name of ["serviceAccountName", "serviceAccount"]) if (spec[name] === "") delete spec[name];
  if (typeof spec.serviceAccountName === "string") otherwise(spec, "serviceAccount", spec.serviceAccountName);
  else if (typeof spec.serviceAccount === "string") spec.serviceAccountName = spec.serviceAccount;
  for (const list of ["initContainers", "containers"]) for (const one of items(spec, list)) defaultContainer(one);
  for (const volume of items(spec, "volumes")) defaultVolume(volume);
}
