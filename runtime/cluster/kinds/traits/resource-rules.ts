import { Quantity } from "@watchfire/cel";
import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { qualifiedNameFaults } from "../names.ts";
import { type Check, type FieldRule, named, namedIfSet, oneOf, present } from "./field-rules.ts";
import { items } from "./pod-spec.ts";
import { isAbove } from "./value-faults.ts";

const containerResources = ["cpu", "memory", "ephemeral-storage"];
const hugePages = "hugepages-";

/** A resource that a plugin of the node offers, such as a device: it has a domain that is not Kubernetes' own. */
export const isExtendedResource = (name: string): boolean =>
  name.includes("/") && !/^([^/]*\.)?kubernetes\.io\//.test(name);

/** True for a resource that is counted in whole pieces, and promised to one container only. */
const isWhole = (name: string): boolean => isExtendedResource(name) || name.startsWith(hugePages);

/** The faults of a container's `resources`. */
export function resourceFaults(resources: unknown, path: string): FieldFault[] {
  return requirementFaults(resources, path, containerResourceFaults);
}

/** The names that a pod's own `resources` may have. */
const podResources = ["cpu", hugePages, "memory"];

function podResourceFaults(name: string, path: string): FieldFault[] {
  const faults = resourceNameFaults(name, path, isStandardResource(name));
  if (faults.length > 0) return faults;
  const isAllowed = name === "cpu" || name === "memory" || name.startsWith(hugePages);
  return isAllowed ? [] : [fault.unsupported(path, name, podResources)];
}

/** A pod's own resources: those of a container, of fewer kinds, and no less than its containers ask for. */
const ownResources: Check = (value, path) => {
  if (!isFields(value) || !isFields(value.resources)) return [];
  const { resources } = value;
  const where = path === "" ? "resources" : `${path}.resources`;
  const faults = requirementFaults(resources, where, podResourceFaults);
  if (resources.claims !== undefined && resources.claims !== null)
    faults.unshift(fault.forbidden(`${where}.claims`, "claims may not be set for Resources at pod-level"));
  return faults.length > 0 ? faults : [...sumFaults(value, where), ...limitFaults(value, where)];
};

/** Faults of a pod's requests that are below the sum of its containers'. */
function sumFaults(spec: Fields, path: string): FieldFault[] {
  return Object.entries(fieldsOf(at(spec, "resources.requests"))).flatMap(([name, value]) => {
    const amounts = items(spec, "containers").map((one) => fieldsOf(at(one, "resources.requests"))[name]);
    const sum = amounts.filter((each) => each !== undefined).map(String);
    if (!sum.every((each) => Quantity.isQuantity(each)) || !Quantity.isQuantity(String(value))) return [];
    const total = sum.reduce((all, each) => all + Quantity.parse(each).billionths, 0n);
    if (Quantity.parse(String(value)).billionths >= total) return [];
    const why = `must be greater than or equal to aggregate container requests of ${plain(total)}`;
    return [fault.invalid(`${path}.requests[${name}]`, value, why)];
  });
}

const plain = (billionths: bigint): string =>
  billionths % 1_000_000_000n === 0n ? String(billionths / 1_000_000_000n) : `${billionths / 1_000_000n}m`;

/** Faults of limits of a container that are above the pod's. */
function limitFaults(spec: Fields, path: string): FieldFault[] {
  const most = fieldsOf(at(spec, "resources.limits"));
  return ["containers", "initContainers"].flatMap((list) =>
    items(spec, list).flatMap((container, index) =>
      Object.entries(fieldsOf(at(container, "resources.limits"))).flatMap(([name, value]) =>
        isAbove(value, most[name])
          ? [
              fault.invalid(
                // The real server's path.
                `${path}.${list}[${index}][${name}].limits`,
                value,
                `must be less than or equal to pod limits of ${String(most[name])}`,
              ),
            ]
          : [],
      ),
    ),
  );
}

/** The resources that a pod takes beyond its containers, which its RuntimeClass sets. */
const overhead: Check = (value, path) =>
  isFields(value) ? requirementFaults({ limits: value }, path, containerResourceFaults) : [];

function requirementFaults(
  resources: unknown,
  path: string,
  nameFaults: (name: string, path: string) => FieldFault[],
): FieldFault[] {
  const { limits, requests } = fieldsOf(resources);
  const most = fieldsOf(limits);
  const names = [...Object.keys(most), ...Object.keys(fieldsOf(requests))];
  const amounts = (kind: string, name: string, value: unknown) => {
    const where = `${path}.${kind}[${name}]`;
    return [...nameFaults(name, where), ...amountFaults(name, value, where)];
  };
  return [
    ...Object.entries(most).flatMap(([name, value]) => amounts("limits", name, value)),
    ...Object.entries(fieldsOf(requests)).flatMap(([name, value]) => [
      ...amounts("requests", name, value),
      ...(most[name] === undefined && isWhole(name)
        ? [fault.required(`${path}.limits`, "Limit must be set for non overcommitable resources")]
        : []),
      ...(isWhole(name) && most[name] !== undefined && isAbove(most[name], value)
        ? [fault.invalid(`${path}.requests`, value, `must be equal to ${name} limit of ${String(most[name])}`)]
        : []),
      ...(isAbove(value, most[name])
        ? [
            fault.invalid(
              `${path}.requests`,
              value,
              `must be ${isWhole(name) ? "equal to" : "less than or equal to"} ${name} limit of ${String(most[name])}`,
            ),
          ]
        : []),
    ]),
    ...(names.some((name) => name.startsWith(hugePages)) && !names.includes("cpu") && !names.includes("memory")
      ? [fault.forbidden(path, "HugePages require cpu or memory")]
      : []),
  ];
}

function amountFaults(name: string, value: unknown, path: string): FieldFault[] {
  const faults: FieldFault[] = [];
  if (isAbove("0", value)) faults.push(fault.invalid(path, value, "must be greater than or equal to 0"));
  if (isExtendedResource(name)) faults.push(...countFaults(value, path));
  return [...faults, ...pageFaults(name, value, path)];
}

/** A fault of an amount of huge pages that is no multiple of their size. */
function pageFaults(name: string, value: unknown, path: string): FieldFault[] {
  const [, size = ""] = /^hugepages-(.*)$/.exec(name) ?? [];
  if (!Quantity.isQuantity(size) || !Quantity.isQuantity(String(value))) return [];
  const [page, amount] = [Quantity.parse(size).billionths, Quantity.parse(String(value)).billionths];
  return page > 0n && amount % page === 0n
    ? []
    : [fault.invalid(path, value, `${String(value)} is not positive integer multiple of ${name}`)];
}

/** A fault where a quantity is not a whole number. */
export function countFaults(value: unknown, path: string): FieldFault[] {
  const text = String(value);
  const isCount = !Quantity.isQuantity(text) || Quantity.parse(text).billionths % 1_000_000_000n === 0n;
  return isCount ? [] : [fault.invalid(path, value, "must be an integer")];
}

const isStandardResource = (name: string): boolean => containerResources.includes(name) || name.startsWith(hugePages);

/** Faults of the name of a container's resource. */
export function containerResourceFaults(name: string, path: string): FieldFault[] {
  const faults = resourceNameFaults(name, path, isStandardResource(name));
  if (!name.includes("/") && !isStandardResource(name))
    faults.push(fault.invalid(path, name, "must be a standard resource for containers"));
  // A quota counts devices by this prefix.
  if (isExtendedResource(name) && name.startsWith("requests."))
    faults.push(fault.invalid(path, name, "doesn't follow extended resource name standard"));
  return faults;
}

/** Faults of a resource's name, such as `cpu` or `example.com/gpu`. */
export function resourceNameFaults(name: string, path: string, isStandard: boolean): FieldFault[] {
  const faults = qualifiedNameFaults(name).map((text) => fault.invalid(path, name, text));
  if (faults.length === 0 && !name.includes("/") && !isStandard)
    faults.push(fault.invalid(path, name, "must be a standard resource type or fully qualified"));
  return faults;
}

/** The amounts of a container that a variable or a file may have as its value. */
const amountNames = ["limits", "requests"].flatMap((kind) =>
  ["cpu", "ephemeral-storage", "memory"].map((name) => `${kind}.${name}`),
);

const sizes = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/** The divisors of an amount. 0 stands for 1. */
function divisorFaults(resource: string, divisor: unknown, path: string): FieldFault[] {
  const kind = resource.replace(/^(limits|requests)\./, "");
  const allowed = kind === "cpu" ? ["1m", "1"] : sizes;
  if (divisor === undefined || divisor === null || !Quantity.isQuantity(String(divisor))) return [];
  const value = Quantity.parse(String(divisor)).billionths;
  if (value === 0n || allowed.some((each) => Quantity.parse(each).billionths === value)) return [];
  const shown = kind === "cpu" ? "1m and 1" : sizes.join(", ");
  const what = kind.startsWith(hugePages) ? "hugepages" : kind;
  return [fault.invalid(path, resource, `only divisor's values ${shown} are supported with the ${what} resource`)];
}

/** A reference to an amount of a container. */
export const amountReference: Check = (value, path) => {
  if (!isFields(value)) return [];
  const { resource, divisor } = value;
  const text = String(resource ?? "");
  if (/^(limits|requests)\.hugepages-/.test(text)) return divisorFaults(text, divisor, `${path}.divisor`);
  const faults = [present(), oneOf(amountNames)].flatMap((check) => check(resource, `${path}.resource`));
  return faults.length > 0 ? faults : divisorFaults(text, divisor, `${path}.divisor`);
};

/** A claim of a pod names a claim of the namespace, or the template of one. */
const claimSource: Check = (value, path) => {
  if (!isFields(value)) return [];
  const { name, resourceClaimName, resourceClaimTemplateName } = value;
  const shown = {
    Name: name ?? "",
    ResourceClaimName: resourceClaimName ?? null,
    ResourceClaimTemplateName: resourceClaimTemplateName ?? null,
  };
  const isSet = [resourceClaimName, resourceClaimTemplateName].map((each) => each !== undefined && each !== null);
  if (isSet.every(Boolean))
    return [
      fault.invalid(path, shown, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
    ];
  return isSet.some(Boolean)
    ? []
    : [fault.invalid(path, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")];
};

/** A pod's claims have different names. */
const claimsOnce: Check = (value, path) => {
  const names = new Set<unknown>();
  return (Array.isArray(value) ? value.filter(isFields) : []).flatMap(({ name }, index) => {
    const isKnown = names.has(name);
    names.add(name);
    return isKnown && name ? [fault.duplicate(`${path}[${index}].name`, name)] : [];
  });
};

/** The rules of a pod's own resources and claims. */
export const resourceRules: readonly FieldRule[] = [
  ["", ownResources],
  ["overhead", overhead],
  ["resourceClaims", claimsOnce],
  ["resourceClaims[]", claimSource],
  ["resourceClaims[].name", present(), named("label")],
  ["resourceClaims[].resourceClaimName", namedIfSet("subdomain")],
  ["resourceClaims[].resourceClaimTemplateName", namedIfSet("subdomain")],
];
