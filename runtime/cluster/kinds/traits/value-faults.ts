import { Quantity } from "@watchfire/cel";
import { type Fields, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { labelFaults, labelValueFaults, qualifiedNameFaults } from "../names.ts";
import { items } from "./pod-spec.ts";

/** The transport protocols that a port may have. */
export const protocols = ["SCTP", "TCP", "UDP"];

/** A fault where a field has a value other than one of these. */
export function choiceFaults(fields: Fields, path: string, name: string, allowed: readonly string[]): FieldFault[] {
  const value = fields[name];
  if (value === undefined || value === null || allowed.includes(String(value))) return [];
  return [fault.unsupported(`${path}.${name}`, value, allowed)];
}

/** A fault for each of the named fields that is below zero. */
export function negativeFaults(fields: Fields, path: string, ...names: string[]): FieldFault[] {
  return names.flatMap((name) => {
    const value = fields[name];
    return typeof value === "number" && value < 0
      ? [fault.invalid(`${path}.${name}`, value, "must be greater than or equal to 0")]
      : [];
  });
}

/** Faults of a port's number. */
export function portNumberFaults(port: unknown, path: string): FieldFault[] {
  return typeof port === "number" && (port < 1 || port > 65_535)
    ? [fault.invalid(path, port, "must be between 1 and 65535, inclusive")]
    : [];
}

/** Faults of a port's name. */
export function portNameFaults(name: string, path: string): FieldFault[] {
  const invalid = (detail: string) => fault.invalid(path, name, detail);
  return [
    ...(name.length > 15 ? [invalid("must be no more than 15 characters")] : []),
    ...(/^[-a-z0-9]+$/.test(name)
      ? []
      : [invalid("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")]),
    ...(/[a-z]/.test(name) ? [] : [invalid("must contain at least one letter (a-z)")]),
    ...(name.includes("--") ? [invalid("must not contain consecutive hyphens")] : []),
    ...(/^-|-$/.test(name) ? [invalid("must not begin or end with a hyphen")] : []),
  ];
}

/** True if a quantity is larger than another; false where either is no quantity. */
export function isAbove(left: unknown, right: unknown): boolean {
  const [a, b] = [String(left), String(right)];
  if (left === undefined || right === undefined || !Quantity.isQuantity(a) || !Quantity.isQuantity(b)) return false;
  return Quantity.parse(a).compareTo(Quantity.parse(b)) > 0;
}

const percent = /^\d+%$/;

/** Faults of a number or a percentage, such as `maxUnavailable: 25%`. */
export function shareFaults(value: unknown, path: string): FieldFault[] {
  if (typeof value === "number" && value < 0) return [fault.invalid(path, value, "must be greater than or equal to 0")];
  if (typeof value !== "string") return [];
  if (!percent.test(value))
    return [
      fault.invalid(
        path,
        value,
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      ),
    ];
  return Number(value.slice(0, -1)) > 100 ? [fault.invalid(path, value, "must not be greater than 100%")] : [];
}

/** Faults of a metav1.LabelSelector: labels, and expressions with their operators. */
export function labelSelectorFaults(selector: unknown, path: string): FieldFault[] {
  if (!isFields(selector)) return [];
  const labels = isFields(selector.matchLabels) ? (selector.matchLabels as Record<string, string>) : {};
  return [
    ...labelFaults(labels, `${path}.matchLabels`),
    ...items(selector, "matchExpressions").flatMap((expression, index) =>
      expressionFaults(expression, `${path}.matchExpressions[${index}]`),
    ),
  ];
}

function expressionFaults({ key, operator, values }: Fields, path: string): FieldFault[] {
  const isEmpty = !Array.isArray(values) || values.length === 0;
  const faults: FieldFault[] = (isEmpty ? [] : values).flatMap((value: unknown, index: number) =>
    labelValueFaults(String(value)).map((text) => fault.invalid(`${path}.values[${index}]`, value, text)),
  );
  if (operator === "In" || operator === "NotIn") {
    if (isEmpty) faults.push(fault.required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    if (!isEmpty)
      faults.push(
        fault.forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
      );
  } else faults.push(fault.invalid(`${path}.operator`, operator ?? "", "not a valid selector operator"));
  return [...faults, ...qualifiedNameFaults(String(key ?? "")).map((text) => fault.invalid(`${path}.key`, key, text))];
}
