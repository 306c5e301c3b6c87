import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import { ApiError } from "../kube/api-error.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { changedLease, type LeaseChange, type LeaseRecord, readLease } from "./lease-record.ts";

/** One Lease on an API server. Each call is one request, and throws what the transport throws; of a 401, WF_KUBE_CREDENTIALS; of a 403, WF_KUBE_FORBIDDEN. */
export interface LeaseApi {
  /** Undefined: there is none. */
  get(timeoutMs: number): Promise<LeaseRecord | undefined>;
  /** "conflict": somebody made one first. */
  create(change: LeaseChange, timeoutMs: number): Promise<LeaseRecord | "conflict">;
  /** "conflict": it is no longer as `record` has it. */
  update(record: LeaseRecord, change: LeaseChange, timeoutMs: number): Promise<LeaseRecord | "conflict">;
}

/** A Lease is a kilobyte; what others annotate it with may add to that. */
const objectLimit = 1024 * 1024;

export const leases = { group: "coordination.k8s.io", version: "v1", plural: "leases", namespaced: true } as const;

/** The Lease of this name; one that is made gets the labels. */
export function leaseApi(
  transport: KubeTransport,
  namespace: string,
  name: string,
  labels?: Readonly<Record<string, string>>,
): LeaseApi {
  const path = resourcePath(leases, namespace, name);
  const write = async (method: "POST" | "PUT", at: string, body: object, timeoutMs: number) => {
    try {
      const request = { method, path: at, body: JSON.stringify(body), timeoutMs };
      return readLease(await transport.json<unknown>(request, objectLimit));
    } catch (error) {
      // A Lease that is gone is one that somebody else changed.
      if (error instanceof ApiError && (error.status === 409 || (method === "PUT" && error.status === 404))) {
        return "conflict" as const;
      }
      throw told(error);
    }
  };
  return {
    async get(timeoutMs) {
      try {
        return readLease(await transport.json<unknown>({ method: "GET", path, timeoutMs }, objectLimit));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw told(error);
      }
    },
    create: (change, timeoutMs) =>
      write(
        "POST",
        resourcePath(leases, namespace),
        changedLease({ metadata: { name, namespace, ...(labels && { labels }) } }, change),
        timeoutMs,
      ),
    update: ({ object }, change, timeoutMs) => write("PUT", path, changedLease(object, change), timeoutMs),
  };
}

/** A right that is missing, or credentials that are refused, with what to do about it. */
export function told(error: unknown): unknown {
  const code = error instanceof ApiError ? codes[error.status] : undefined;
  return code ? new WatchfireError(code, { what: (error as ApiError).message, cause: error }) : error;
}

const codes: Readonly<Record<number, ErrorCode>> = { 401: "WF_KUBE_CREDENTIALS", 403: "WF_KUBE_FORBIDDEN" };
