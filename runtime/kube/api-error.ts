import type { Readable } from "node:stream";
import { z } from "zod";
import { type ResourceVersion, resourceVersionIn } from "../base/resource-version.ts";
import { cut } from "../base/wording.ts";
import type { KubeResponse } from "./transport.ts";

/**
 * Error bodies are read up to here and the rest is thrown away. A Status is a few hundred bytes, and a proxy's page is
 * not ours to keep.
 */
const bodyLimit = 64 * 1024;

/** How much of a body that is no Status is shown to people; the length kopf uses for the same (`errors.py`). */
const textLimit = 256;

/** A server cannot park us for longer than this, in milliseconds, whatever its Retry-After says. */
const retryAfterCapMs = 60_000;

/** Besides those from 500 on: they pass, or are a matter of credentials, and say nothing of the server. */
const passing: ReadonlySet<number> = new Set([401, 408, 429]);

/** Servers that are not written in Go send null for what is absent. */
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

/** What an API server, or something before it, answered instead of what was asked for. */
export class ApiError extends Error {
  override readonly name: string = "ApiError";
  /** The HTTP status, or the code of an in-stream Status. */
  readonly status: number;
  /** `Expired`, `Forbidden`, …; empty where the body was no Status, or one that gives none. */
  readonly reason: string;
  readonly isStatus: boolean;
  readonly details: StatusDetails | undefined;
  /** How long the server asks us to wait, at most 60 000; undefined where it asks nothing. */
  readonly retryAfterMs: number | undefined;

  constructor(fault: {
    status: number;
    message: string;
    reason?: string | undefined;
    /** Whether the body was a Status. Default: where there is a reason. */
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
   * Whether a server said it that is no API server, and not for a while, as a gateway does: an API server gives a Status.
   * Of a path that it does not have, it gives none either.
   */
  get isForeign(): boolean {
    return !this.isStatus && this.status < 500 && !passing.has(this.status);
  }

  /** History from before the asked-for resourceVersion is gone. */
  get expired(): boolean {
    return this.status === 410 || this.reason === "Expired" || this.reason === "Gone";
  }

  /**
   * Where the server's history begins, which the watch cache tells with an expired resourceVersion (apiserver
   * `watch_cache_history.go`). etcd itself does not, so that it is undefined where a kind is not cached.
   */
  get oldestResourceVersion(): ResourceVersion | undefined {
    return resourceVersionIn(/too old resource version: \d+ \((\d+)\)/.exec(this.message)?.[1]);
  }

  /**
   * The server has not seen the asked-for resourceVersion yet. Servers before 1.19 said so in words alone
   * (client-go `reflector.go`, isTooLargeResourceVersionError).
   */
  get tooLargeResourceVersion(): boolean {
    if (this.details?.causes?.some((cause) => cause.reason === "ResourceVersionTooLarge")) return true;
    return this.message.includes("Too large resource version");
  }
}

/**
 * Reads a Status out of text that should be one: a response's body or the object of an in-stream ERROR event.
 * @param status what to assume where the text has no code.
 * @param retryAfter the Retry-After header, seconds or an HTTP date.
 * @param nowMs wall time, to which a date is compared.
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

/** Reads a failed response to its end, so that its socket is free again, and says what it meant. */
export async function readApiError(response: KubeResponse, nowMs = Date.now()): Promise<ApiError> {
  const text = await readLimited(response.body);
  const header = response.headers["retry-after"];
  return parseStatus(text, response.status, Array.isArray(header) ? header[0] : header, nowMs);
}

/** The first 64 KiB of a body as text; what follows, and a failure of the socket, is dropped. */
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
    // The status line already says what failed; a body cut short adds nothing.
  } finally {
    body.destroy();
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Milliseconds to wait by a Retry-After header; undefined for none, garbage, or a date that has passed. */
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
