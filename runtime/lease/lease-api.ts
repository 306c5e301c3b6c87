import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import { ApiError } from "../kube/api-error.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { changedLease, type LeaseChange, type LeaseRecord, readLease } from "./lease-record.ts";

/**
 * One Lease on an API server. Each call is one request, and throws the transport's errors, with WF_KUBE_CREDENTIALS for a 401 and
 * WF_KUBE_FORBIDDEN for a 403.
 */
export interface LeaseApi {
  /** Returns `undefined` if it does not exist. */
  get(timeoutMs: number): Promise<LeaseRecord | undefined>;
  /** Returns "conflict" if another process created one first. */
  create(change: LeaseChange, timeoutMs: number): Promise<LeaseRecord | "conflict">;
  /** Returns "conflict" if it has changed since `record`. */
  update(record: LeaseRecord, change: LeaseChange, timeoutMs: number): Promise<LeaseRecord | "conflict">;
}

/** Maximum bytes of a Lease. It takes a kilobyte; annotations of others may add to that. */
const objectLimit = 1024 * 1024;

export const leases = { group: "coordination.k8s.io", version: "v1", plural: "leases", namespaced: true } as const;

/** Returns the API for the Lease of this name. If it creates the Lease, it sets the labels. */
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
      // A Lease that is gone was changed by another process.
      if (error instanceof ApiError && (error.status === 409 || (method === "PUT" && error.status === 404))) {
        return "conflict" as const;
      }
      throw leaseError(error);
    }
  };
  return {
    async get(timeoutMs) {
      try {
        return readLease(await transport.json<unknown>({ method: "GET", path, timeoutMs }, objectLimit));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw leaseError(error);
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

/** Converts a 401 or 403 to a WatchfireError, whose hint says what to do. Returns other errors unchanged. */
export function leaseError(error: unknown): unknown {
  const code = error instanceof ApiError ? codes[error.status] : undefined;
  return code ? new WatchfireError(code, { what: (error as ApiError).message, cause: error }) : error;
}

const codes: Readonly<Record<number, ErrorCode>> = { 401: "WF_KUBE_CREDENTIALS", 403: "WF_KUBE_FORBIDDEN" };
