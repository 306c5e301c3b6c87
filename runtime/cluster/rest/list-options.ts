import { type LabelSelector, parseLabelSelector } from "../api/label-selector.ts";
import { type ApiError, badRequest, type FieldFault, fault, invalid } from "../api/status.ts";
import type { ResourceType } from "../kinds/resource-type.ts";
import { type FieldSelector, parseFieldSelector } from "./field-selector.ts";

/** metav1.ListOptions of one request, validated. */
export interface ListOptions {
  labels: LabelSelector;
  fields: FieldSelector;
  limit: number;
  continue: string;
  /** Absent if the client did not send it. */
  resourceVersion?: number;
  match?: "Exact" | "NotOlderThan";
  sendInitialEvents: boolean | undefined;
  allowWatchBookmarks: boolean;
  timeoutSeconds?: number;
}

/** Reads the options of a list or watch. Throws 400 or 422 as the server does. */
export function listOptions(query: URLSearchParams, type: ResourceType, watch: boolean): ListOptions {
  const text = (name: string) => query.get(name) ?? "";
  const match = text("resourceVersionMatch");
  const initial = query.get("sendInitialEvents");
  const timeout = text("timeoutSeconds");
  const options: ListOptions = {
    labels: parseLabelSelector(text("labelSelector")),
    fields: parseFieldSelector(text("fieldSelector"), type),
    limit: Math.max(0, integer(text("limit"))),
    continue: text("continue"),
    sendInitialEvents: initial === null || initial === "" ? undefined : truth(initial),
    allowWatchBookmarks: truth(query.get("allowWatchBookmarks")),
    ...(timeout === "" ? {} : { timeoutSeconds: integer(timeout) }),
    ...(match === "Exact" || match === "NotOlderThan" ? { match } : {}),
  };
  const faults = optionFaults(options, match, text("resourceVersion"), watch);
  if (faults.length > 0) throw invalid({ group: "meta.k8s.io", kind: "ListOptions" }, "", faults);
  const version = revisionOf(text("resourceVersion"));
  return version === undefined ? options : { ...options, resourceVersion: version };
}

/** True if a boolean query parameter is set. */
export const truth = (value: string | null): boolean =>
  value !== null && value !== "0" && value.toLowerCase() !== "false";

/** @throws ApiError 400 for a text that is no integer */
function integer(text: string): number {
  if (text === "") return 0;
  if (!/^[+-]?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  return Number(text);
}

/** A resourceVersion as a number; undefined for "". Throws a 400. */
export function revisionOf(text: string): number | undefined {
  if (text === "") return undefined;
  if (!/^\d+$/.test(text)) throw malformed(text);
  return Number(text);
}

function malformed(text: string): ApiError {
  const value = JSON.stringify(text);
  return badRequest(
    `invalid resource version: resourceVersion: Invalid value: ${value}: strconv.ParseUint: parsing ${value}: invalid syntax`,
  );
}

/** The rules of apimachinery's `ValidateListOptions`. */
function optionFaults(options: ListOptions, match: string, version: string, watch: boolean): FieldFault[] {
  const forbid = (field: string, why: string) => [fault.forbidden(field, why)];
  if (watch && options.sendInitialEvents !== undefined) {
    if (match !== "NotOlderThan")
      return forbid("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (options.continue !== "") return forbid("continue", "sendInitialEvents is forbidden when continue is provided");
    return [];
  }
  if (!watch && options.sendInitialEvents !== undefined)
    return forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
  // Such a watch begins with a list, by default with the newest one.
  if (watch && match === "" && (version === "" || version === "0") && options.continue !== "")
    return forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
  if (match === "") return [];
  if (watch)
    return [
      ...forbid(
        "resourceVersionMatch",
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
      ),
      ...(match === "NotOlderThan" ? [] : [fault.unsupported("resourceVersionMatch", match, ["NotOlderThan"])]),
    ];
  if (version === "")
    return forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
  if (options.continue !== "")
    return forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
  if (!options.match) return [fault.unsupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""])];
  if (options.match === "Exact" && version === "0")
    return forbid("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
  return [];
}
