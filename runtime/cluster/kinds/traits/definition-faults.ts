import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { oneOf, present } from "./field-rules.ts";
import { items } from "./pod-spec.ts";

const columnTypes = ["boolean", "date", "integer", "number", "string"];

/** Faults of a version's printer columns. */
export function columnFaults(version: Fields, path: string): FieldFault[] {
  return items(version, "additionalPrinterColumns").flatMap((column, place) => {
    const where = `${path}.additionalPrinterColumns[${place}]`;
    return [
      ...present()(column.name, `${where}.name`),
      ...simplePathFaults(column.jsonPath, `${where}.JSONPath`),
      ...(columnTypes.includes(String(column.type))
        ? []
        : [fault.invalid(`${where}.type`, column.type ?? "", `must be one of ${columnTypes.join(",")}`)]),
    ];
  });
}

function simplePathFaults(value: unknown, path: string): FieldFault[] {
  if (!value) return [fault.required(path)];
  return String(value).startsWith(".")
    ? []
    : [fault.invalid(path, value, "must be a simple json path starting with .")];
}

/** Faults of what a version says about its objects: its subresources, its selectable fields, and that it is deprecated. */
export function servingFaults(version: Fields, own: string, path: string): FieldFault[] {
  return [
    ...deprecationFaults(version, `${path}.deprecationWarning`),
    ...scaleFaults(at(version, "subresources.scale"), `${own}.subresources.scale`),
    ...selectableFaults(version, `${own}.selectableFields`),
  ];
}

/** Most characters of a warning that a version is deprecated. */
const longestWarning = 256;

function deprecationFaults({ deprecated, deprecationWarning: text }: Fields, path: string): FieldFault[] {
  if (typeof text !== "string") return [];
  const wrong = (detail: string) => [fault.invalid(path, text, detail)];
  if (deprecated !== true) return wrong("can only be set for deprecated versions");
  if (text === "") return wrong("must not be an empty string");
  if (Buffer.byteLength(text) > longestWarning) return wrong(`must be <= ${longestWarning} characters long`);
  const unprintable = text.search(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u);
  return unprintable < 0
    ? []
    : wrong(`must only contain printable UTF-8 characters; non-printable character found at index ${unprintable}`);
}

/** Faults of the paths of a scale; each leads into the object's spec or status. */
function scaleFaults(scale: unknown, path: string): FieldFault[] {
  if (!isFields(scale)) return [];
  const below = (name: string, roots: readonly string[], words: string): FieldFault[] => {
    const value = scale[name];
    const faults = simplePathFaults(value, `${path}.${name}`);
    if (faults.length > 0 || roots.some((root) => String(value).startsWith(`${root}.`))) return faults;
    return [fault.invalid(`${path}.${name}`, value, `should be a json path under ${words}`)];
  };
  return [
    ...below("specReplicasPath", [".spec"], ".spec"),
    ...below("statusReplicasPath", [".status"], ".status"),
    ...(scale.labelSelectorPath ? below("labelSelectorPath", [".spec", ".status"], "either .spec or .status") : []),
  ];
}

/** Most fields of a version by which its objects can be selected. */
const mostSelectable = 8;

function selectableFaults(version: Fields, path: string): FieldFault[] {
  const fields = items(version, "selectableFields");
  const schema = at(version, "schema.openAPIV3Schema");
  const known = new Set<unknown>();
  const faults = fields.flatMap(({ jsonPath }, index) => {
    const where = `${path}[${index}].jsonPath`;
    if (!jsonPath) return [fault.required(where)];
    const wrong = selectableFault(String(jsonPath), schema);
    if (wrong !== undefined) return [fault.invalid(where, jsonPath, wrong)];
    const isKnown = known.has(jsonPath);
    known.add(jsonPath);
    return isKnown ? [fault.duplicate(where, jsonPath)] : [];
  });
  if (fields.length > mostSelectable) faults.push(fault.tooMany(path, fields.length, mostSelectable));
  return faults;
}

const selectableTypes = ["string", "boolean", "integer"];
const notAField = "is an invalid path: does not refer to a valid field";

/** Describes the fault in the path of a selectable field, which must lead to a text, a boolean or an integer of the schema. */
function selectableFault(path: string, schema: unknown): string | undefined {
  if (!path.startsWith(".")) return `is an invalid path: expected [ or . but got: ${/^[^.[]*/.exec(path)?.[0]}`;
  if (path.includes("[")) return "is an invalid path: array notation is not allowed";
  let field: unknown = schema;
  const [, ...steps] = path.split(".");
  // Every kind has these; its schema describes them only in part.
  if (["metadata", "kind", "apiVersion"].includes(steps[0] ?? "")) return notAField;
  for (const step of steps) field = fieldsOf(fieldsOf(field).properties)[step];
  if (!isFields(field)) return notAField;
  return selectableTypes.includes(String(field.type)) && !field["x-kubernetes-int-or-string"]
    ? undefined
    : "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
}

const strategies = ["None", "Webhook"];
const reviewVersions = ["v1", "v1beta1"];

/** Faults of the conversion between versions. Their paths are those of an older API, as in the real server. */
export function conversionFaults(conversion: Fields): FieldFault[] {
  const { strategy } = conversion;
  const [client, reviews] = ["spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions"];
  const { clientConfig, conversionReviewVersions: versions } = fieldsOf(conversion.webhook);
  const faults = oneOf(strategies)(strategy, "spec.conversion.strategy");
  if (strategy !== "Webhook") {
    const unwanted = "should not be set when strategy is not set to Webhook";
    if (clientConfig !== undefined) faults.push(fault.forbidden(client, unwanted));
    if (versions !== undefined) faults.push(fault.forbidden(reviews, unwanted));
    return faults;
  }
  if (isFields(clientConfig)) faults.push(...clientFaults(clientConfig, client));
  else faults.push(fault.required(client, "required when strategy is set to Webhook"));
  if (!Array.isArray(versions) || versions.length === 0) faults.push(fault.required(reviews));
  else if (!versions.some((version) => reviewVersions.includes(String(version))))
    faults.push(fault.invalid(reviews, versions, `must include at least one of ${reviewVersions.join(", ")}`));
  return faults;
}

function clientFaults({ url, service }: Fields, path: string): FieldFault[] {
  if ((url === undefined) === (service === undefined))
    return [fault.required(path, "exactly one of url or service is required")];
  if (typeof url !== "string" || url.startsWith("https://")) return [];
  const form = "desired format: https://host[/path]";
  const scheme = /^([a-z]+):/i.exec(url)?.[1] ?? "";
  return [fault.invalid(`${path}.url`, scheme, `'https' is the only allowed URL scheme; ${form}`)];
}
