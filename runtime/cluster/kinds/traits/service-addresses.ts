import { isIP } from "node:net";
import { type Fields, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { exactlyOneOf } from "./field-rules.ts";

const families = ["IPv4", "IPv6"];
const policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];

const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** True for a Service without an address and without a selector: another program writes its endpoints, of any family. */
function isHeadless({ clusterIP, selector }: Fields): boolean {
  return clusterIP === "None" && (!isFields(selector) || Object.keys(selector).length === 0);
}

/** Completes the families of a new Service's addresses. The cluster has addresses of IPv4 only. */
export function defaultFamilies(spec: Fields): void {
  const given = textsOf(spec.ipFamilies);
  if (!isHeadless(spec)) {
    spec.ipFamilies ??= ["IPv4"];
    spec.ipFamilyPolicy ??= "SingleStack";
    return;
  }
  spec.ipFamilyPolicy ??= "RequireDualStack";
  const first = given[0] ?? "IPv4";
  const isDual = spec.ipFamilyPolicy !== "SingleStack" && families.includes(first) && given.length < 2;
  const second = families.find((each) => each !== first) ?? "";
  spec.ipFamilies = isDual ? [first, second] : (spec.ipFamilies ?? ["IPv4"]);
}

/** Faults of a Service's addresses and of their families, on a cluster that has addresses of IPv4 only. */
export function addressFaults(spec: Fields): FieldFault[] {
  if (spec.type === "ExternalName")
    return ["ipFamilies", "ipFamilyPolicy"]
      .filter((name) => spec[name] !== undefined && spec[name] !== null)
      .map((name) => fault.forbidden(`spec.${name}`, "may not be set for ExternalName services"));
  const { ipFamilyPolicy: policy } = spec;
  const given = textsOf(spec.ipFamilies);
  const addresses = textsOf(spec.clusterIPs);
  const faults = [
    ...exactlyOneOf(policies)(policy, "spec.ipFamilyPolicy"),
    ...given.flatMap((family, index) => [
      ...exactlyOneOf(families)(family, `spec.ipFamilies[${index}]`),
      ...(given.indexOf(family) < index ? [fault.duplicate(`spec.ipFamilies[${index}]`, family)] : []),
    ]),
  ];
  const isSeveral = { "IP families": given.length > 1, "cluster IPs": addresses.length > 1 };
  for (const [what, isTrue] of Object.entries(isSeveral))
    if (isTrue && policy === "SingleStack") {
      const why = `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`;
      faults.push(fault.invalid("spec.ipFamilyPolicy", policy, why));
    }
  const kinds = addresses.map((address) => isIP(address));
  if (kinds.some((kind, index) => kind !== 0 && kinds.indexOf(kind) < index))
    faults.push(fault.invalid("spec.clusterIPs", addresses, "may specify no more than one IP for each IP family"));
  // The real server checks what the cluster has only if the rest is valid.
  return faults.length > 0 || isHeadless(spec) ? faults : servedFaults(policy, given, addresses);
}

function servedFaults(policy: unknown, given: readonly string[], addresses: readonly string[]): FieldFault[] {
  return [
    ...(policy === "RequireDualStack"
      ? [fault.invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")]
      : []),
    ...given.flatMap((family, index) =>
      family === "IPv6" ? [fault.invalid(`spec.ipFamilies[${index}]`, family, "not configured on this cluster")] : [],
    ),
    ...addresses.flatMap((address, index) =>
      isIP(address) === 6
        ? [fault.invalid(`spec.clusterIPs[${index}]`, addresses, "IPv6 is not configured on this cluster")]
        : [],
    ),
  ];
}
