import { brand } from "./brand.ts";
import { type Duration, parseDuration } from "./duration.ts";

/** Thrown by a handler: the event can never succeed. It is not retried and is passed to the function's `onFailure`. */
export class PermanentError extends Error {
  static {
    brand(PermanentError, "PermanentError");
  }
}

/** Thrown by a handler: retry after this time instead of the backoff. The attempt counts. */
export class RetryAfter extends Error {
  static {
    brand(RetryAfter, "RetryAfter");
  }

  /** Milliseconds until the next attempt. */
  readonly delayMs: number;

  /** Throws a TypeError for a text that is not a duration. */
  constructor(delay: Duration, message?: string, options?: ErrorOptions) {
    const delayMs = parseDuration(delay);
    if (delayMs === undefined) {
      throw new TypeError(`RetryAfter takes milliseconds or text such as "30s", got ${JSON.stringify(delay)}`);
    }
    super(message ?? `retry after ${typeof delay === "number" ? `${delay}ms` : delay}`, options);
    this.delayMs = delayMs;
  }
}

/** Fields of a failed call of `ctx.kube` or `ctx.events`. */
export interface KubeErrorInit extends ErrorOptions {
  /** The HTTP status; 0 if there was no response. */
  readonly status?: number;
  /** The `reason` of the API server's Status, such as `NotFound`; empty if absent. */
  readonly reason?: string;
}

/** A failed call of `ctx.kube`. Subclasses exist for the common causes; every other failure has this class. */
export class KubeError extends Error {
  static {
    brand(KubeError, "KubeError");
  }

  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** The `reason` of the API server's Status, such as `NotFound`; empty if absent. */
  readonly reason: string;

  constructor(message: string, init: KubeErrorInit = {}) {
    super(message, init.cause === undefined ? undefined : { cause: init.cause });
    this.status = init.status ?? 0;
    this.reason = init.reason ?? "";
  }
}

/** 404: no such object, or no such subresource. */
export class NotFoundError extends KubeError {
  static {
    brand(NotFoundError, "NotFoundError");
  }
}

/**
 * 404: the cluster does not serve the kind, which may be misspelt or not installed yet. Not a NotFoundError, because a handler that
 * took "no such kind" for "no such object" would delete what is in use. An attempt that ends with it is repeated after
 * 30 s, unless it was the last one, because the kind's definition may be installed meanwhile.
 */
export class NotServedError extends KubeError {
  static {
    brand(NotServedError, "NotServedError");
  }
}

/** 409 on create: an object of that name exists. */
export class AlreadyExistsError extends KubeError {
  static {
    brand(AlreadyExistsError, "AlreadyExistsError");
  }
}

/** 409: the object changed since it was read, or another manager owns an applied field. */
export class ConflictError extends KubeError {
  static {
    brand(ConflictError, "ConflictError");
  }
}

/** 400 or 422: the call's arguments or the object are invalid; an unchanged retry cannot succeed. */
export class InvalidError extends KubeError {
  static {
    brand(InvalidError, "InvalidError");
  }
}

/** The call is not allowed. */
export class ForbiddenError extends KubeError {
  static {
    brand(ForbiddenError, "ForbiddenError");
  }

  /**
   * `runtime`: the manifest does not grant the call, and nothing was sent. `apiserver`: the runtime's own account lacks the
   * right.
   */
  readonly refusedBy: "runtime" | "apiserver";
  /** The rule to add, as one YAML line: to the manifest's `permissions`, or to the runtime's role. */
  readonly missingRule?: string;

  constructor(
    message: string,
    init: KubeErrorInit & { readonly refusedBy?: "runtime" | "apiserver"; readonly missingRule?: string } = {},
  ) {
    super(message, init);
    this.refusedBy = init.refusedBy ?? "apiserver";
    if (init.missingRule !== undefined) this.missingRule = init.missingRule;
  }
}

/** 429: the API server sheds load, or the function called too often. */
export class TooManyRequestsError extends KubeError {
  static {
    brand(TooManyRequestsError, "TooManyRequestsError");
  }

  /** Milliseconds to wait, if the server says so. */
  readonly retryAfterMs?: number;

  constructor(message: string, init: KubeErrorInit & { readonly retryAfterMs?: number } = {}) {
    super(message, init);
    if (init.retryAfterMs !== undefined) this.retryAfterMs = init.retryAfterMs;
  }
}

/** No answer in time: the call's limit, the attempt's end, or 504 from the API server. A write may have been made. */
export class TimeoutError extends KubeError {
  static {
    brand(TimeoutError, "TimeoutError");
  }
}

/** `ctx.fetch` failed before there was a response: the manifest's `egress` refused it, or the network failed. */
export class FetchError extends Error {
  static {
    brand(FetchError, "FetchError");
  }

  /** True if the manifest's `egress` does not allow the request: a retry cannot succeed. */
  readonly refused: boolean;

  constructor(message: string, init: ErrorOptions & { readonly refused?: boolean } = {}) {
    super(message, init.cause === undefined ? undefined : { cause: init.cause });
    this.refused = init.refused ?? false;
  }
}

/** An error in transit from the runtime to the handler: its class's name and its fields. */
export interface ErrorDescription {
  readonly type: string;
  readonly message: string;
  readonly status?: number;
  readonly reason?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

const classes: Readonly<Record<string, new (message: string, init: object) => Error>> = {
  KubeError,
  NotFoundError,
  NotServedError,
  AlreadyExistsError,
  ConflictError,
  InvalidError,
  ForbiddenError,
  TooManyRequestsError,
  TimeoutError,
  FetchError,
};

/** Returns the typed error of a description; a plain Error for an unknown name. */
export function errorFrom(description: ErrorDescription): Error {
  const type = Object.hasOwn(classes, description.type) ? classes[description.type] : undefined;
  if (!type) return new Error(description.message);
  return new type(description.message, {
    ...description.details,
    status: description.status,
    reason: description.reason,
  });
}
