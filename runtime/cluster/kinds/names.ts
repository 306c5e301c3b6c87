import { type FieldFault, fault } from "../api/status.ts";
import type { NameRule } from "./resource-type.ts";

interface Rule {
  pattern: RegExp;
  limit: number;
  /** The message of apimachinery's validation for a name that does not match. */
  message: string;
}

const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const label1035 =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const rules: Record<Exclude<NameRule, "segment">, Rule> = {
  subdomain: {
    pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
    limit: 253,
    message: subdomain,
  },
  label: { pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, limit: 63, message: label },
  label1035: { pattern: /^[a-z]([-a-z0-9]*[a-z0-9])?$/, limit: 63, message: label1035 },
};

/** The faults of a name, in apimachinery's words; empty for a valid name. */
export function nameFaults(rule: NameRule, name: string): string[] {
  if (rule === "segment") {
    if (name === "." || name === "..") return [`may not be '${name}'`];
    return ["/", "%"].filter((sign) => name.includes(sign)).map((sign) => `may not contain '${sign}'`);
  }
  if (rule === "label" && name.includes(".")) return ["must not contain dots"];
  const { pattern, limit, message } = rules[rule];
  const faults: string[] = [];
  if (name.length > limit) faults.push(`must be no more than ${limit} bytes`);
  if (!pattern.test(name)) faults.push(message);
  return faults;
}

const namePart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const namePartMessage =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const labelValueMessage =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/** Faults of a label's or annotation's key, or of a finalizer's name. */
export function qualifiedNameFaults(name: string): string[] {
  const parts = name.split("/");
  if (parts.length > 2)
    return [
      "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
    ];
  const faults: string[] = [];
  const prefix = parts.length === 2 ? (parts[0] ?? "") : undefined;
  const own = parts.at(-1) ?? "";
  if (prefix === "") faults.push("prefix part must be non-empty");
  else if (prefix !== undefined) faults.push(...nameFaults("subdomain", prefix).map((text) => `prefix part ${text}`));
  if (own === "") faults.push("name part must be non-empty");
  else if (own.length > 63) faults.push("name part must be no more than 63 bytes");
  if (!namePart.test(own)) faults.push(namePartMessage);
  return faults;
}

/** Faults of a label's value. */
export function labelValueFaults(value: string): string[] {
  const faults: string[] = [];
  if (value.length > 63) faults.push("must be no more than 63 bytes");
  if (!labelValue.test(value)) faults.push(labelValueMessage);
  return faults;
}

/** Faults of a map of labels. */
export function labelFaults(labels: Record<string, string> | undefined, path: string): FieldFault[] {
  const faults: FieldFault[] = [];
  for (const [key, value] of Object.entries(labels ?? {})) {
    for (const text of qualifiedNameFaults(key)) faults.push(fault.invalid(path, key, text));
    for (const text of labelValueFaults(value)) faults.push(fault.invalid(path, value, text));
  }
  return faults;
}
