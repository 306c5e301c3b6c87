import type { Clock } from "../clock.ts";
import type { KubeTransport } from "../kube/transport.ts";
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

/**
 * The newest resourceVersion of a collection, read consistently, or undefined where it could not be learnt. A WatchList
 * of nothing says it without listing anything; a server that has none is asked for a list of one item.
 */
export async function currentVersion(collection: Collection): Promise<string | undefined> {
  const version = await byWatchList(collection);
  return version !== undefined || collection.signal.aborted ? version : byList(collection);
}

async function byWatchList({ transport, clock, path, identity, signal }: Collection): Promise<string | undefined> {
  let version: string | undefined;
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
  await session.run();
  signal.removeEventListener("abort", stop);
  return version;
}

async function byList({ transport, path, signal }: Collection): Promise<string | undefined> {
  try {
    const list = await transport.json<{ metadata?: { resourceVersion?: unknown } }>({
      method: "GET",
      path,
      query: { limit: "1" },
      signal,
    });
    const version = list.metadata?.resourceVersion;
    return typeof version === "string" && version !== "" ? version : undefined;
  } catch {
    // What fails here, the source's own requests will run into and report.
    return undefined;
  }
}
