import { isIP } from "node:net";
import type { Path } from "../document/path.ts";
import { parseFieldPath } from "./field-path.ts";
import { parseSize } from "./quantity.ts";
import { isMachine } from "./surroundings-schema.ts";

/** Returns a hint for an unusable value of the right type, for mistakes that come from other formats. */
export function valueHint(path: Path, actual: unknown): string | undefined {
  if (typeof actual !== "string") return undefined;
  const fields = path.filter((step) => typeof step === "string");
  const field = fields.at(-1) ?? "";
  if (fields.includes("permissions")) return permissionHint(field, actual);
  if (field === "matchNames" && actual === "*") return "leave `namespaceSelector` out to watch in all of them";
  if (field === "events") return eventHint(actual);
  if (fields.includes("changedFields")) return parseFieldPath(`.${actual}`) ? `did you mean .${actual}?` : undefined;
  if (field === "handler") return "name the file, such as ./handler.ts";
  if (field === "field" && /\[\d*\]/.test(actual))
    return `an index is of all items: ${actual.replace(/\[\d*\]/g, "[*]")}`;
  if (field === "host") return hostHint(actual);
  if (field === "apiVersion" && !actual.includes("/")) return `a group is followed by its version: ${actual}/v1`;
  if (field === "name" && !fields.includes("env")) return dnsLabelHint(actual);
  if (/^\d+(?:\.\d+)?$/.test(actual)) return unitHint(path, actual);
  if (field === "memory" && /^\d+[kmg]i?b?$/i.test(actual)) return memoryHint(actual);
  return undefined;
}

/** Admission webhooks and other runtimes use other names for event types. */
function eventHint(actual: string): string | undefined {
  if (/^(?:creat|new)/i.test(actual)) return "did you mean Added?";
  if (/^(?:updat|chang)/i.test(actual)) return "did you mean Modified?";
  return /^remov/i.test(actual) ? "did you mean Deleted?" : undefined;
}

/** A size in Kubernetes' notation is spelled correctly, so it must be too small or too large. */
function memoryHint(actual: string): string {
  if (parseSize(actual) !== undefined) return "write a size within these bounds, such as 64Mi";
  const [digits = ""] = /^\d+/.exec(actual) ?? [];
  return `write ${digits}${actual.charAt(digits.length).toUpperCase()}i`;
}

function hostHint(actual: string): string {
  if (/^\*(?:\.[^.]*\.?)?$/.test(actual)) return "name a domain with a dot after the star, such as *.example.com";
  if (/^\d+$/.test(actual)) return "write an address with its dots, such as 192.0.2.1, or a host by its name";
  const host = hostIn(actual);
  if (isMachine(host)) return "write 127.0.0.1 or ::1, and fetch by that address";
  if (/^[\d.]+$/.test(host) && isIP(host) === 0) return addressHint(host);
  return `write only the name, such as ${host}, and its ports under \`ports\``;
}

/** Hint for a host that looks like an address. In a URL, a number with a leading zero is octal, which is rarely intended. */
function addressHint(actual: string): string {
  const text = `http://${actual}`;
  if (!/(?:^|\.)0\d/.test(actual) && URL.canParse(text)) return `write the address in full: ${new URL(text).hostname}`;
  return "write the four numbers of an address, 0 to 255 and with no zero before them, such as 192.0.2.1";
}

/** Returns a hint for a number without a unit: `add its unit: "30s"`. `undefined` if the field takes no unit. */
export function unitHint(path: Path, amount: string): string | undefined {
  const field = String(path.at(-1));
  if (field === "memory") return Number(amount) < 8192 ? `add its unit: "${amount}Mi"` : undefined;
  if (field === "cpuPerEvent") return `add its unit: "${amount}ms"`;
  if (/^(?:timeout|initialDelay|maxDelay)$/.test(field)) return `add its unit: "${amount}s" (or "${amount}ms")`;
  return undefined;
}

function permissionHint(field: string, actual: string): string | undefined {
  switch (field) {
    case "apiGroups":
      if (actual.includes("/")) return `write only the group: ${actual.split("/")[0]}`;
      return /^v\d|^core$/.test(actual) ? 'the core group is written ""' : undefined;
    case "resources":
      if (/^[a-z0-9.-]+\/$/.test(actual))
        return `write ${actual.slice(0, -1)}, or name the subresource: ${actual}status`;
      return `use the plural that \`kubectl api-resources\` shows, such as ${plural(actual)}`;
    case "verbs":
      if (actual === "watch") return "watching is what triggers do; to read objects, grant get or list";
      return actual === "deletecollection" ? "grant list and delete; the client deletes one by one" : undefined;
    case "namespaces":
      return actual === "*" ? "leave `namespaces` out to grant it in all of them" : undefined;
    default:
      return undefined;
  }
}

/** Forms a plural like the API server does for a custom resource, but treats a word that ends in a single s as a plural. */
function plural(text: string): string {
  const word = text.toLowerCase().replace(/[^a-z0-9.-]/g, "");
  if (word === "") return "pods";
  if (word.endsWith("ss")) return `${word}es`;
  if (word.endsWith("y")) return `${word.slice(0, -1)}ies`;
  return word.endsWith("s") ? word : `${word}s`;
}

function dnsLabelHint(actual: string): string | undefined {
  const label = actual
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replace(/^-|-$/g, "");
  return label === "" ? undefined : `such as ${label}`;
}

const hostIn = (text: string): string =>
  /^(?:\w+:\/\/)?\[([^\]]+)\]/.exec(text)?.[1] ??
  (text
    .replace(/^\w+:\/\//, "")
    .replace(/^\*\./, "")
    .replace(/[:/].*$/s, "") ||
    "example.com");
