import type { Clock } from "../../base/clock.ts";
import { type ResourceVersion, resourceVersionIn } from "../../base/resource-version.ts";
import { ApiError } from "../../kube/api-error.ts";
import { escapedValue } from "../../kube/field-selector.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { ObjectIdentity } from "../fanout/source-spec.ts";
import { Session } from "./session.ts";

/**
 * Time limit for the end mark, in milliseconds. An API server with nothing to send marks the end of the initial events after
 * about a second.
 */
const markMs = 5000;
/** Statuses that concern one collection and may differ for another. */
const refusals: ReadonlySet<number> = new Set([401, 403, 404]);
/**
 * Returns a field selector that matches no object: no object can have the name `-`. An account that may request only one name
 * gets a contradiction for that name instead.
 */
function nobody(name: string | undefined): string {
  if (name === undefined) return "metadata.name=-";
  const value = escapedValue(name);
  return `metadata.name!=${value},metadata.name=${value}`;
}

interface Collection {
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly path: string;
  readonly identity: ObjectIdentity;
  /** The one name that may be requested; `undefined`: any. */
  readonly name: string | undefined;
  readonly signal: AbortSignal;
  /** Whether the server may know WatchList. */
  readonly watchList: boolean;
}

/** Answer to the question. Without `version` it could not be learnt now; ask again no earlier than after `retryAfterMs`. */
export interface CurrentVersion {
  readonly version?: ResourceVersion | undefined;
  /** Milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** The account may not ask here. */
  readonly refused?: boolean;
  /** The server does not know WatchList. */
  readonly unsupported?: boolean;
}

/**
 * Returns the newest resourceVersion of a collection, read consistently. A WatchList that selects nothing reports it without
 * listing anything. A server without WatchList is asked for a list of one item, unless it is too busy for either.
 */
export async function currentVersion(collection: Collection): Promise<CurrentVersion> {
  if (!collection.watchList) return byList(collection);
  const answer = await byWatchList(collection);
  return answer === undefined || answer.unsupported ? { ...(await byList(collection)), ...answer } : answer;
}

/** Returns `undefined` if a list may succeed instead. */
async function byWatchList({
  transport,
  clock,
  path,
  identity,
  name,
  signal,
}: Collection): Promise<CurrentVersion | undefined> {
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
      fieldSelector: nobody(name),
      timeoutSeconds: String(markMs / 1000),
    },
    headers: {},
    identity,
    timeoutMs: markMs,
    idleMs: () => markMs,
    spaceEndsSilence: () => false,
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
  if (ending.type !== "refused") return undefined;
  if (isBusy(ending.error)) return { retryAfterMs: ending.error.retryAfterMs };
  return unknown.has(ending.error.status) ? { unsupported: true } : undefined;
}

/** Statuses of a server that does not know WatchList. */
const unknown: ReadonlySet<number> = new Set([400, 422]);

const isBusy = ({ status }: ApiError): boolean => status === 429 || status >= 500;

async function byList({ transport, path, name, signal }: Collection): Promise<CurrentVersion> {
  try {
    const list = await transport.json<{ metadata?: { resourceVersion?: unknown } }>({
      method: "GET",
      path,
      // To list no object among all names, a server would scan the whole collection; hence a list of one item.
      query: { limit: "1", fieldSelector: name === undefined ? undefined : nobody(name) },
      signal,
    });
    const version = list.metadata?.resourceVersion;
    return { version: typeof version === "string" ? resourceVersionIn(version) : undefined };
  } catch (error) {
    // The source's own requests will meet the same failure and report it.
    if (!(error instanceof ApiError)) return {};
    return { retryAfterMs: error.retryAfterMs, refused: refusals.has(error.status) };
  }
}
