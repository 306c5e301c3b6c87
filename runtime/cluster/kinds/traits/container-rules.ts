import { at, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { qualifiedNameFaults } from "../names.ts";
import {
  below,
  type Check,
  dataKey,
  exactlyOneOf,
  type FieldRule,
  mustBeName,
  named,
  notNegative,
  objectsIn,
  oneOf,
  oneSource,
  port,
  present,
  relativePath,
  within,
} from "./field-rules.ts";
import { allContainers, items } from "./pod-spec.ts";
import { amountReference } from "./resource-rules.ts";
import { securityRules } from "./security-rules.ts";

/** The fields of a pod that a variable may have as its value. */
const variableFields = [
  ...["metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"],
  ...["status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"],
];
/** Further fields that the API can select pods by. */
const otherFields = [
  "metadata.annotations",
  "metadata.labels",
  "spec.restartPolicy",
  "spec.schedulerName",
  "status.phase",
];

const variableField: Check = (value, path) => {
  if (value === undefined || value === null || value === "") return [fault.required(path)];
  const text = String(value);
  if (variableFields.includes(text)) return [];
  const subscript = /^metadata\.(?:annotations|labels)\['(.*)'\]$/s.exec(text)?.[1];
  if (subscript !== undefined)
    return qualifiedNameFaults(subscript.toLowerCase()).map((why) => fault.invalid(path, subscript, why));
  return otherFields.includes(text)
    ? [fault.unsupported(path, value, variableFields)]
    : [fault.invalid(path, value, `error converting fieldPath: field label not supported: ${text}`)];
};

/** A variable's name, or the beginning of names. */
const variableName: Check = (value, path) =>
  typeof value !== "string" || /^[ -<>-~]*$/.test(value)
    ? []
    : [
        fault.invalid(
          path,
          value,
          "a valid environment variable name must consist only of printable ASCII characters other than '='",
        ),
      ];

const podVersion: Check = (value, path) => {
  if (!isFields(value) || !value.apiVersion || value.apiVersion === "v1") return [];
  const why = `error converting fieldPath: unsupported pod version: ${value.apiVersion}`;
  return [fault.invalid(`${path}.fieldPath`, value.fieldPath ?? "", why)];
};

const keyOf = (source: string): FieldRule[] => [
  [`env[].valueFrom.${source}.name`, mustBeName("subdomain")],
  [`env[].valueFrom.${source}.key`, dataKey],
];

const actions = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/** A handler has exactly one action. Probes have a check of their own. */
const handler: Check = (value, path) => {
  if (!isFields(value)) return [];
  const [first, ...more] = objectsIn(value, actions);
  if (first === undefined) return [fault.required(path, "must specify a handler type")];
  return more.map((action) => fault.forbidden(`${path}.${action}`, "may not specify more than 1 handler type"));
};

/** The names of a request's headers. Their faults are at the list. */
const headers: Check = (value, path) =>
  (Array.isArray(value) ? value.filter(isFields) : []).flatMap(({ name }) =>
    /^[-A-Za-z0-9]+$/.test(String(name ?? ""))
      ? []
      : [
          fault.invalid(
            path,
            name ?? "",
            "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
          ),
        ],
  );

const actionRules: readonly FieldRule[] = [
  ["exec.command", present()],
  ["httpGet.path", present()],
  ["httpGet.port", port],
  ["httpGet.scheme", oneOf(["HTTP", "HTTPS"])],
  ["httpGet.httpHeaders", headers],
  ["tcpSocket.port", port],
  ["grpc.port", port],
];

/** A container that may not gain privileges has no way to gain them. */
const privileges: Check = (value, path) => {
  if (!isFields(value) || value.allowPrivilegeEscalation !== false) return [];
  const where = `${path}.allowPrivilegeEscalation`;
  const { privileged, capabilities } = value;
  const added = isFields(capabilities) && Array.isArray(capabilities.add) ? capabilities.add : [];
  return [
    ...(privileged === true
      ? [fault.invalid(where, false, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")]
      : []),
    ...(added.some((one) => one === "CAP_SYS_ADMIN")
      ? [
          fault.invalid(
            where,
            false,
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
          ),
        ]
      : []),
  ];
};

/** A container's ports have different names. */
const portNamesOnce: Check = (value, path) => {
  const names = new Set<unknown>();
  return (Array.isArray(value) ? value : []).flatMap((one, index) => {
    const name = isFields(one) ? one.name : undefined;
    const isKnown = names.has(name);
    if (name) names.add(name);
    return isKnown ? [fault.duplicate(`${path}[${index}].name`, name)] : [];
  });
};

/** Ports of the node are taken once by a container. */
const hostPortsOnce: Check = (value, path) => {
  const taken = new Set<string>();
  return (Array.isArray(value) ? value.filter(isFields) : []).flatMap(({ hostPort, protocol, hostIP }, index) => {
    if (!hostPort) return [];
    const place = `${protocol}/${hostIP ?? ""}/${hostPort}`;
    const isTaken = taken.has(place);
    taken.add(place);
    return isTaken ? [fault.duplicate(`${path}[${index}].hostPort`, place)] : [];
  });
};

const trimmed: Check = (value, path) =>
  typeof value === "string" && value !== value.trim()
    ? [fault.invalid(path, value, "must not have leading or trailing whitespace")]
    : [];

const aboveZero = within(1, Number.POSITIVE_INFINITY, "must be greater than 0");

const unsettable: Check = (value, path) =>
  value === undefined || value === null ? [] : [fault.invalid(path, value, "must not be set for readinessProbes")];

/** The real server leaves the index out of some paths. */
const withoutIndex = (path: string): string => path.replace(/\[\d+\]([^[\]]*)$/, "$1");

const atList =
  (check: Check): Check =>
  (value, path) =>
    check(value, withoutIndex(path));

const readOnlyChoices = ["Disabled", "Enabled", "IfPossible"];

const mount: Check = (value, path) => {
  if (!isFields(value)) return [];
  const { subPath, subPathExpr, recursiveReadOnly: recursive, readOnly } = value;
  const where = `${withoutIndex(path)}.recursiveReadOnly`;
  return [
    ...(subPath && subPathExpr
      ? [fault.invalid(`${path}.subPathExpr`, subPathExpr, "subPathExpr and subPath are mutually exclusive")]
      : []),
    ...(recursive && recursive !== "Disabled" && readOnlyChoices.includes(String(recursive)) && readOnly !== true
      ? [fault.forbidden(where, "may only be specified when readOnly is true")]
      : []),
  ];
};

/** Only a privileged container may mount volumes for the node. */
const propagation: Check = (value, path) =>
  isFields(value) && at(value, "securityContext.privileged") !== true
    ? items(value, "volumeMounts")
        .filter(({ mountPropagation }) => mountPropagation === "Bidirectional")
        .map(() =>
          fault.forbidden(
            `${path}.volumeMounts.mountPropagation`,
            "Bidirectional mount propagation is available only to privileged containers",
          ),
        )
    : [];

/** Rules of when a container is restarted add to its policy, and look at exit codes. */
const restartRules: Check = (value, path) => {
  if (!isFields(value) || !Array.isArray(value.restartPolicyRules)) return [];
  const missing = value.restartPolicy
    ? []
    : [fault.required(`${path}.restartPolicy`, "must specify restartPolicy when restart rules are used")];
  const rules = items(value, "restartPolicyRules").flatMap((rule, index) =>
    isFields(rule.exitCodes)
      ? []
      : [fault.required(`${path}.restartPolicyRules[${index}].exitCodes`, "must be specified")],
  );
  return [...missing, ...rules];
};

const fieldRules: readonly FieldRule[] = [
  [
    "env[].valueFrom",
    oneSource(
      ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"],
      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
    ),
  ],
  ["image", trimmed],
  ["env[].name", variableName],
  ["env[].valueFrom.fieldRef.fieldPath", variableField],
  ["env[].valueFrom.fieldRef", podVersion],
  ["env[].valueFrom.resourceFieldRef", amountReference],
  ["env[].valueFrom.fileKeyRef.key", variableName],
  ["env[].valueFrom.fileKeyRef.path", relativePath],
  ...keyOf("secretKeyRef"),
  ...keyOf("configMapKeyRef"),
  [
    "envFrom",
    // The real server names the list, and not its item.
    (value, path) =>
      (Array.isArray(value) ? value : []).flatMap((item) =>
        oneSource(["configMapRef", "secretRef"], "must specify one of: `configMapRef` or `secretRef`")(item, path),
      ),
  ],
  ["envFrom[].prefix", variableName],
  ["envFrom[].configMapRef.name", present(), named("subdomain")],
  ["envFrom[].secretRef.name", present(), named("subdomain")],
  ["ports[].name", (value, path) => (value === "" || value === undefined ? [] : port(value, path))],
  ["ports", portNamesOnce],
  ["ports", hostPortsOnce],
  ["volumeMounts[].subPath", atList(relativePath)],
  ["volumeMounts[].subPathExpr", atList(relativePath)],
  ["volumeMounts[].recursiveReadOnly", atList(oneOf(readOnlyChoices))],
  ["volumeMounts[]", mount],
  ["", propagation],
  ["restartPolicy", exactlyOneOf(["Always", "Never", "OnFailure"])],
  ["", restartRules],
  ["restartPolicyRules[].action", exactlyOneOf(["Restart", "RestartAllContainers"])],
  ["restartPolicyRules[].exitCodes.operator", exactlyOneOf(["In", "NotIn"])],
  ["securityContext.procMount", exactlyOneOf(["Default", "Unmasked"])],
  ["resizePolicy[].resourceName", oneOf(["cpu", "memory"])],
  ["resizePolicy[].restartPolicy", oneOf(["NotRequired", "RestartContainer"])],
  ["readinessProbe.terminationGracePeriodSeconds", unsettable],
  ...["livenessProbe", "startupProbe"].map((probe): FieldRule => [`${probe}.terminationGracePeriodSeconds`, aboveZero]),
  ["readinessProbe.successThreshold", notNegative],
  ["terminationMessagePolicy", oneOf(["File", "FallbackToLogsOnError"])],
  ...["livenessProbe", "readinessProbe", "startupProbe"].flatMap((probe) => below(probe, actionRules)),
  ...["lifecycle.postStart", "lifecycle.preStop"].flatMap((hook) => below(hook, [["", handler], ...actionRules])),
  ...securityRules,
  ["securityContext", privileges],
];

/** A hook may not sleep longer than the pod may take to end. */
function sleepBeforeEnd(value: unknown, path: string): FieldFault[] {
  const spec = fieldsOf(value);
  const grace = Number(spec.terminationGracePeriodSeconds ?? 30);
  return allContainers(spec, path).flatMap(([container, where]) =>
    ["postStart", "preStop"].flatMap((hook) => {
      const sleep = at(container, `lifecycle.${hook}.sleep`);
      const seconds = Number(fieldsOf(sleep).seconds ?? 0);
      if (!isFields(sleep) || (seconds >= 0 && seconds <= grace)) return [];
      const why = `must be non-negative and less than terminationGracePeriodSeconds (${grace})`;
      return [fault.invalid(`${where}.lifecycle.${hook}.sleep`, seconds, why)];
    }),
  );
}

const hooks = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];

/** The rules of all containers of a pod. */
export const containerRules: readonly FieldRule[] = [
  ...below("containers[]", fieldRules),
  ...below("initContainers[]", [
    ...fieldRules,
    [
      "",
      (value, path) =>
        isFields(value) && value.restartPolicy !== "Always"
          ? objectsIn(value, hooks).map((name) =>
              fault.forbidden(`${path}.${name}`, "may not be set for init containers without restartPolicy=Always"),
            )
          : [],
    ],
  ]),
  ["", sleepBeforeEnd],
];
