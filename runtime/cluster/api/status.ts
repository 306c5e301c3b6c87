import { encodeJson } from "../exact-json.ts";

/** metav1.StatusCause. */
interface Cause {
  reason?: string;
  message?: string;
  field?: string;
}

/** metav1.StatusDetails. */
interface Details {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: Cause[];
  retryAfterSeconds?: number;
}

/** metav1.Status, the body of every failure and of most deletions. */
export interface Status {
  kind: "Status";
  apiVersion: "v1";
  metadata: { continue?: string; remainingItemCount?: number };
  status: "Success" | "Failure";
  message?: string;
  reason?: string;
  details?: Details;
  code?: number;
}

/** A resource as failures name it. */
export interface Named {
  group: string;
  plural: string;
}

/** The resource's qualified name, such as `deployments.apps`; for the core group, the plain name. */
function qualified(resource: Named): string {
  return resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
}

function detailsOf(resource: Named, name: string): Details {
  return {
    ...(name === "" ? {} : { name }),
    ...(resource.group === "" ? {} : { group: resource.group }),
    kind: resource.plural,
  };
}

/** A request that failed, with the Status to answer. Messages are those of apimachinery's `api/errors`. */
export class ApiError extends Error {
  readonly status: Status;

  constructor(code: number, reason: string, message: string, details?: Details, metadata: Status["metadata"] = {}) {
    super(message);
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      metadata,
      status: "Failure",
      message,
      ...(reason === "" ? {} : { reason }),
      ...(details ? { details } : {}),
      code,
    };
  }

  get code(): number {
    return this.status.code ?? 500;
  }

  get reason(): string {
    return this.status.reason ?? "";
  }
}

/** A path that no resource answers to: plain text, as the server's mux writes it. */
export class PathNotFound extends Error {}

export const badRequest = (message: string): ApiError => new ApiError(400, "BadRequest", message);

export const unauthorized = (): ApiError => new ApiError(401, "Unauthorized", "Unauthorized");

export function forbidden(resource: Named, name: string, why: string, causes?: Cause[]): ApiError {
  const what = name === "" ? `${qualified(resource)} is forbidden` : `${qualified(resource)} "${name}" is forbidden`;
  const details = { ...detailsOf(resource, name), ...(causes ? { causes } : {}) };
  return new ApiError(403, "Forbidden", `${what}: ${why}`, details);
}

export function notFound(resource: Named, name: string): ApiError {
  return new ApiError(404, "NotFound", `${qualified(resource)} "${name}" not found`, detailsOf(resource, name));
}

export function alreadyExists(resource: Named, name: string): ApiError {
  const message = `${qualified(resource)} "${name}" already exists`;
  return new ApiError(409, "AlreadyExists", message, detailsOf(resource, name));
}

export function conflict(resource: Named, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`;
  return new ApiError(409, "Conflict", message, detailsOf(resource, name));
}

/** The most common conflict: the resourceVersion sent is not the object's. */
export const modified = (resource: Named, name: string): ApiError =>
  conflict(
    resource,
    name,
    "the object has been modified; please apply your changes to the latest version and try again",
  );

export const methodNotAllowed = (): ApiError =>
  new ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {});

export const unsupportedMediaType = (accepted: readonly string[]): ApiError =>
  new ApiError(
    415,
    "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`,
  );

export const tooLarge = (limit: number): ApiError =>
  new ApiError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limit}`);

/** 410; with a continue token the caller may continue inconsistently. */
export const expired = (message: string, resume?: string): ApiError =>
  new ApiError(410, "Expired", message, undefined, resume === undefined ? {} : { continue: resume });

/** One invalid field, as apimachinery's `field.Error` reports it. */
export interface FieldFault {
  reason: string;
  field: string;
  /** The message, without the field's path. */
  message: string;
}

/** 422 with a cause per fault. `kind` is the object's kind, not the resource. */
export function invalid(type: { group: string; kind: string }, name: string, faults: FieldFault[]): ApiError {
  const qualifiedKind = type.group === "" ? type.kind : `${type.kind}.${type.group}`;
  const lines = [...new Set(faults.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`)))];
  const summary = lines.length === 1 ? lines[0] : `[${lines.join(", ")}]`;
  return new ApiError(422, "Invalid", `${qualifiedKind} "${name}" is invalid: ${summary}`, {
    ...(name === "" ? {} : { name }),
    ...(type.group === "" ? {} : { group: type.group }),
    ...(type.kind === "" ? {} : { kind: type.kind }),
    causes: faults,
  });
}

/** Constructors of the field faults that the server itself reports. */
export const fault = {
  required: (field: string, detail = ""): FieldFault => ({
    reason: "FieldValueRequired",
    field,
    message: `Required value${detail === "" ? "" : `: ${detail}`}`,
  }),
  invalid: (field: string, value: unknown, detail: string): FieldFault => ({
    reason: "FieldValueInvalid",
    field,
    message: `Invalid value: ${quoted(value)}: ${detail}`,
  }),
  forbidden: (field: string, detail: string): FieldFault => ({
    reason: "FieldValueForbidden",
    field,
    message: `Forbidden: ${detail}`,
  }),
  unsupported: (field: string, value: unknown, supported: readonly string[]): FieldFault => ({
    reason: "FieldValueNotSupported",
    field,
    message: `Unsupported value: ${quoted(value)}: supported values: ${supported.map((one) => JSON.stringify(one)).join(", ")}`,
  }),
  notFound: (field: string, value: unknown): FieldFault => ({
    reason: "FieldValueNotFound",
    field,
    message: `Not found: ${quoted(value)}`,
  }),
  tooLong: (field: string, limit: number): FieldFault => ({
    reason: "FieldValueTooLong",
    field,
    message: `Too long: may not be more than ${limit} bytes`,
  }),
  tooMany: (field: string, count: number, limit: number): FieldFault => ({
    reason: "FieldValueTooMany",
    field,
    message: `Too many: ${count}: must have at most ${limit} items`,
  }),
  duplicate: (field: string, value: unknown): FieldFault => ({
    reason: "FieldValueDuplicate",
    field,
    message: `Duplicate value: ${quoted(value)}`,
  }),
};

/** Formats a value as field errors show it. */
function quoted(value: unknown): string {
  return encodeJson(value) ?? "null";
}

/** The Status that answers a completed deletion. */
export function deleted(resource: Named, name: string, uid: string | undefined): Status {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: {
      name,
      ...(resource.group === "" ? {} : { group: resource.group }),
      kind: resource.plural,
      ...(uid === undefined ? {} : { uid }),
    },
  };
}
