import type { Clock } from "../clock.ts";
import { ApiError } from "../kube/api-error.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { type ResourceVersion, resourceVersionIn } from "../resource-version.ts";
import { Session } from "./session.ts";
import type { ObjectIdentity } from "./source-spec.ts";

/** An API server with nothing to send marks the end of the initial events after about a second. */
const markMs = 5000;
/** No object can have this name. */
const nobody = "metadata.name=-";

export interface Collection {
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly path: string;
  readonly identity: ObjectIdentity;
  readonly signal: AbortSignal;
}

/** What was answered; without a version it could not be learnt now, and is not to be asked before `retryAfterMs`. */
export interface Answer {
  readonly version?: ResourceVersion | undefined;
  /** Milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * The newest resourceVersion of a collection, read consistently. A WatchList of nothing says it without listing
 * anything; a server that has none is asked for a list of one item, but not one that is too busy for either.
 */
export async function currentVersion(collection: Collection): Promise<Answer> {
  return (await byWatchList(collection)) ?? byList(collection);
}

/** Undefined where a list may know more. */
async function byWatchList({ transport, clock, path, identity, signal }: Collection): Promise<Answer | undefined> {
  let version: ResourceVersion | undefined;
  const session = new Session({
    transport,
    clock,
    path,
    query: {
      watch: "1",
      sendInitialEvents: "true",
      resourceVersionMatch: "NotOlderThan",
      allowWatchBookmarks: "true",
      fieldSelector: nobody,
      timeoutSeconds: String(markMs / 1000),
    },
    headers: {},
    identity,
    timeoutMs: markMs,
    idleMs: () => markMs,
    congested: () => undefined,
    opened: () => {},
    change: () => {},
    bookmark: (resourceVersion, initialEnd) => {
      if (!initialEnd) return;
      version = resourceVersion;
      session.end({ type: "closed", by: "stop" });
    },
  });
  const stop = () => session.end({ type: "closed", by: "stop" });
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const ending = await session.run();
  signal.removeEventListener("abort", stop);
  if (version !== undefined || signal.aborted) return { version };
  return ending.type === "refused" && isBusy(ending.error) ? { retryAfterMs: ending.error.retryAfterMs } : undefined;
}

const isBusy = ({ status }: ApiError): boolean => status === 429 || status >= 500;

async function byList({ transport, path, signal }: Collection): Promise<Answer> {
  try {
    const list = await transport.json<{ metadata?: { resourceVersion?: unknown } }>({
      method: "GET",
      path,
      query: { limit: "1" },
      signal,
    });
    const version = list.metadata?.resourceVersion;
    return { version: typeof version === "string" ? resourceVersionIn(version) : undefined };
  } catch (error) {
    // What fails here, the source's own requests will run into and report.
    return error instanceof ApiError ? { retryAfterMs: error.retryAfterMs } : {};
  }
}
