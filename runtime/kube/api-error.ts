import type { Readable } from "node:stream";
import { z } from "zod";
import { type ResourceVersion, resourceVersionIn } from "../base/resource-version.ts";
import { cut } from "../base/wording.ts";
import type { KubeResponse } from "./transport.ts";

/** Largest part of an error body that is read, in bytes; the rest is discarded. A Status has a few hundred bytes. */
const bodyLimit = 64 * 1024;

/** Length of the excerpt shown of a body that is not a Status, in characters; kopf uses the same (`errors.py`). */
const textLimit = 256;

/** Upper bound for a server's Retry-After, in milliseconds. */
const retryAfterCapMs = 60_000;

/** Transient statuses besides those from 500 on: they pass, or concern credentials, and say nothing about the server. */
const passing: ReadonlySet<number> = new Set([401, 408, 429]);

/** Servers that are not written in Go send null for absent values. */
const absent = <Schema extends z.ZodType>(schema: Schema) => schema.nullish().transform((value) => value ?? undefined);

const statusSchema = z.object({
  kind: z.literal("Status"),
  code: absent(z.number()),
  reason: absent(z.string()),
  message: absent(z.string()),
  details: absent(
    z.looseObject({
      retryAfterSeconds: absent(z.number()),
      causes: absent(
        z.array(
          z.looseObject({
            reason: absent(z.string()),
            message: absent(z.string()),
            field: absent(z.string()),
          }),
        ),
      ),
    }),
  ),
});

/** `details` of a metav1.Status, as the server sent it. */
type StatusDetails = NonNullable<z.infer<typeof statusSchema>["details"]>;

/** Error answer of an API server, or of a proxy before it. */
export class ApiError extends Error {
  override readonly name: string = "ApiError";
  /** The HTTP status, or the code of an in-stream Status. */
  readonly status: number;
  /** `Expired`, `Forbidden`, …; empty if the body was not a Status, or a Status without a reason. */
  readonly reason: string;
  readonly isStatus: boolean;
  readonly details: StatusDetails | undefined;
  /** Wait that the server asks for, in milliseconds, at most 60 000; `undefined` if it does not ask. */
  readonly retryAfterMs: number | undefined;

  constructor(fault: {
    status: number;
    message: string;
    reason?: string | undefined;
    /** Whether the body was a Status. Default: true if there is a reason. */
    isStatus?: boolean;
    details?: StatusDetails | undefined;
    retryAfterMs?: number | undefined;
  }) {
    super(fault.message);
    this.status = fault.status;
    this.reason = fault.reason ?? "";
    this.isStatus = fault.isStatus ?? this.reason !== "";
    this.details = fault.details;
    this.retryAfterMs = fault.retryAfterMs === undefined ? undefined : Math.min(fault.retryAfterMs, retryAfterCapMs);
  }

  /**
   * Whether the answer came from a server that is not an API server, such as a gateway, and is not transient. An API server sends
   * a Status, except for a path that it does not have.
   */
  get isForeign(): boolean {
    return !this.isStatus && this.status < 500 && !passing.has(this.status);
  }

  /** The history from the requested resourceVersion is gone. */
  get expired(): boolean {
    return this.status === 410 || this.reason === "Expired" || this.reason === "Gone";
  }

  /**
   * Start of the server's history, which the watch cache reports with an expired resourceVersion (apiserver
   * `watch_cache_history.go`). etcd does not report it, so this is `undefined` for a kind that is not cached.
   */
  get oldestResourceVersion(): ResourceVersion | undefined {
    return resourceVersionIn(/too old resource version: \d+ \((\d+)\)/.exec(this.message)?.[1]);
  }

  /**
   * The server has not reached the requested resourceVersion yet. Servers before 1.19 report this only in the message (client-go
   * `reflector.go`, isTooLargeResourceVersionError).
   */
  get tooLargeResourceVersion(): boolean {
    if (this.details?.causes?.some((cause) => cause.reason === "ResourceVersionTooLarge")) return true;
    return this.message.includes("Too large resource version");
  }
}

/**
 * Reads a Status from text that should be one: a response's body or the object of an ERROR event in a stream.
 * @param status the status to assume if the text has no code.
 * @param retryAfter the Retry-After header, in seconds or as an HTTP date.
 * @param nowMs wall time that a date is compared with.
 */
export function parseStatus(text: string, status: number, retryAfter?: string, nowMs = Date.now()): ApiError {
  const parsed = statusSchema.safeParse(parseJson(text));
  const headerMs = retryAfterMs(retryAfter, nowMs);
  if (!parsed.success) {
    const excerpt = cut(text.trim(), textLimit);
    return new ApiError({ status, message: excerpt || `HTTP status ${status}`, retryAfterMs: headerMs });
  }
  const { code, reason, message, details } = parsed.data;
  const seconds = details?.retryAfterSeconds;
  return new ApiError({
    status: code ?? status,
    reason,
    isStatus: true,
    message: message ?? reason ?? `HTTP status ${code ?? status}`,
    details,
    retryAfterMs: seconds === undefined || seconds <= 0 ? headerMs : Math.max(seconds * 1000, headerMs ?? 0),
  });
}

/** Reads a failed response to its end, which frees its socket, and converts it to an ApiError. */
export async function readApiError(response: KubeResponse, nowMs = Date.now()): Promise<ApiError> {
  const text = await readLimited(response.body);
  const header = response.headers["retry-after"];
  return parseStatus(text, response.status, Array.isArray(header) ? header[0] : header, nowMs);
}

/** Returns the first 64 KiB of a body as text. The rest, and a failure of the socket, are ignored. */
export async function readLimited(body: Readable, limit = bodyLimit): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, limit - size));
      size += chunk.length;
      if (size >= limit) break;
    }
  } catch {
    // The status line already says what failed; a truncated body adds nothing.
  } finally {
    body.destroy();
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Returns the milliseconds to wait according to a Retry-After header; `undefined` if it is absent, unreadable, or a date in the
 * past.
 */
function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  const trimmed = header.trim();
  if (/^\d+$/.test(trimmed)) return Math.min(Number(trimmed) * 1000, retryAfterCapMs);
  const delay = Date.parse(trimmed) - nowMs;
  return Number.isNaN(delay) || delay <= 0 ? undefined : Math.min(delay, retryAfterCapMs);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
