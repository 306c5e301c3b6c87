import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { ApiError } from "./api-error.ts";
import { contactFault } from "./contact-fault.ts";
import { aggregatedAccept, type GroupVersion, readAggregated, readLegacy } from "./discovery-document.ts";
import type { Resource } from "./resource.ts";
import type { KubeTransport } from "./transport.ts";

/**
 * How long discovery results are kept, in milliseconds, as kubectl does: a server's kinds change with its
 * CustomResourceDefinitions.
 */
const keepMs = 600_000;

/** Result of a look-up. `NotServed` is not a failure: the CustomResourceDefinition may be installed later. */
export type Lookup = { readonly type: "Served"; readonly resource: Resource } | NotServed;

export interface NotServed {
  readonly type: "NotServed";
  /** Which of the two is not served. */
  readonly unknown: "apiVersion" | "kind";
  /** The name that was probably meant, or the group version that has the kind, as a sentence. */
  readonly hint: string | undefined;
  /** Message: the group version, or the kind within it, is missing; and the name that was probably meant. */
  readonly reason: string;
}

interface KeptGroupVersion {
  readonly at: number;
  /** `undefined`: the server answered 404. */
  readonly found: GroupVersion | undefined;
}

/**
 * Resolves apiVersion and kind to path, scope and verbs. One aggregated document answers for everything; a group version that it
 * lacks is requested separately, because a kind installed a second ago appears there first. Results are kept for 10 minutes, but
 * absence is never kept. Overlapping calls share one request.
 */
export class Discovery {
  private readonly transport: KubeTransport;
  private readonly clock: Clock;
  private readonly kept = new Map<string, KeptGroupVersion>();
  private readonly inFlight = new Map<string, Promise<GroupVersion | undefined>>();
  private all: Promise<void> | undefined;
  private allAt = Number.NEGATIVE_INFINITY;

  constructor(transport: KubeTransport, clock: Clock) {
    this.transport = transport;
    this.clock = clock;
  }

  /** Throws what the transport throws; an unserved kind is a result, not an error. */
  async resolve(apiVersion: string, kind: string): Promise<Lookup> {
    const found = await this.groupVersion(apiVersion);
    if (!found) {
      const near = suggest(apiVersion, this.kept.keys());
      return notServed("apiVersion", `the API server does not serve ${apiVersion}`, near && `did you mean ${near}?`);
    }
    const named = found.resources.filter((resource) => resource.kind === kind);
    // A kind may have several paths; the one that can be watched is meant.
    const resource = named.find((each) => each.verbs.includes("watch")) ?? named[0];
    if (resource) return { type: "Served", resource };
    // Requested again next time; until then the group version counts as served.
    this.kept.set(apiVersion, { found, at: Number.NEGATIVE_INFINITY });
    return this.lacking(found, kind);
  }

  /**
   * Looks for a missing kind without asking the server: returns a result if the kind's group version was read and lacks it,
   * otherwise `undefined`.
   */
  missing(apiVersion: string, kind: string): NotServed | undefined {
    const found = this.fromKept(apiVersion);
    return found && !found.resources.some((resource) => resource.kind === kind) ? this.lacking(found, kind) : undefined;
  }

  /**
   * Returns everything that the server's aggregated document names, of each group the preferred version first; empty if the server
   * has no such document. Throws what the transport throws.
   */
  async served(): Promise<readonly GroupVersion[]> {
    const now = this.clock.monotonic();
    if (now - this.allAt >= keepMs) await this.loadAll();
    // One that is to be requested again still counts.
    const counts = (at: number) => at === Number.NEGATIVE_INFINITY || now - at < keepMs;
    return [...this.kept.values()].flatMap(({ found, at }) => (found && counts(at) ? found : []));
  }

  /** Discards a group version, after a request based on it was answered with 404. */
  invalidate(apiVersion: string): void {
    this.kept.delete(apiVersion);
  }

  private async groupVersion(apiVersion: string): Promise<GroupVersion | undefined> {
    const fresh = this.fromKept(apiVersion);
    if (fresh) return fresh;
    if (this.clock.monotonic() - this.allAt >= keepMs) {
      this.all ??= this.loadAll().finally(() => {
        this.all = undefined;
      });
      await this.all;
      const loaded = this.fromKept(apiVersion);
      if (loaded) return loaded;
    }
    let flight = this.inFlight.get(apiVersion);
    if (!flight) {
      flight = this.loadOne(apiVersion).finally(() => this.inFlight.delete(apiVersion));
      this.inFlight.set(apiVersion, flight);
    }
    return flight;
  }

  private lacking(found: GroupVersion, kind: string): NotServed {
    const apiVersion = apiVersionOf(found);
    const words = `${apiVersion} has no kind ${kind}`;
    const others = [...this.kept.values()].flatMap((each) => each.found ?? []);
    const other = others.find(({ resources }) => resources.some((resource) => resource.kind === kind));
    if (other) return notServed("kind", words, `${kind} is in ${apiVersionOf(other)}`);
    const near = suggest(
      kind,
      found.resources.map((resource) => resource.kind),
    );
    return notServed("kind", words, near && `did you mean ${near}?`);
  }

  private fromKept(apiVersion: string): GroupVersion | undefined {
    const kept = this.kept.get(apiVersion);
    return kept && this.clock.monotonic() - kept.at < keepMs ? kept.found : undefined;
  }

  private async loadAll(): Promise<void> {
    const headers = { accept: aggregatedAccept };
    const [groups, core] = await Promise.all([
      this.groups(headers),
      this.transport.json<unknown>({ method: "GET", path: "/api", headers }).catch(absent),
    ]);
    const at = this.clock.monotonic();
    this.allAt = at;
    for (const found of [core, groups].flatMap((document) => readAggregated(document) ?? [])) {
      const apiVersion = apiVersionOf(found);
      // Deleted first, because a replaced entry keeps its place, and the document's order has a meaning.
      this.kept.delete(apiVersion);
      this.kept.set(apiVersion, { at, found });
    }
  }

  /**
   * Reads the groups; `undefined` if the server does not have this form. Throws WF_KUBE_PROTOCOL if no API server answers,
   * because every API server has this path.
   */
  private groups(headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
    return this.transport.json<unknown>({ method: "GET", path: "/apis", headers }).catch((error: unknown) => {
      if (error instanceof ApiError && error.isForeign) throw contactFault(error, `${this.transport.description}/apis`);
      return absent(error);
    });
  }

  private async loadOne(apiVersion: string): Promise<GroupVersion | undefined> {
    const { group, version } = splitApiVersion(apiVersion);
    const path = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    const document = await this.transport.json<unknown>({ method: "GET", path }).catch(absent);
    if (document === undefined) {
      // A proxy, or any other server, may answer a 404 with the same words.
      await this.groups();
      return undefined;
    }
    const found = readLegacy(document, group, version);
    if (!found) {
      throw new WatchfireError("WF_KUBE_PROTOCOL", {
        what: `${path} answered with something other than an APIResourceList`,
      });
    }
    this.kept.set(apiVersion, { at: this.clock.monotonic(), found });
    return found;
  }
}

const notServed = (unknown: NotServed["unknown"], words: string, hint: string | undefined): NotServed => ({
  type: "NotServed",
  unknown,
  hint,
  reason: hint === undefined ? words : `${words}; ${hint}`,
});

/** Throws WF_KUBE_NOT_WATCHABLE for a kind that is served but cannot be watched, such as metrics and access reviews. */
export function assertWatchable(resource: Resource): void {
  const missing = ["list", "watch"].filter((verb) => !resource.verbs.includes(verb));
  if (missing.length === 0) return;
  throw new WatchfireError("WF_KUBE_NOT_WATCHABLE", {
    what: `${apiVersionOf(resource)} ${resource.kind} has no verb ${missing.join(" and no verb ")}`,
    actual: resource.verbs.join(","),
  });
}

/** Throws WF_KUBE_CLUSTER_SCOPED for a cluster-scoped kind if a namespace is given: the watch would cover everything. */
export function assertIn(namespace: string | undefined, resource: Resource): void {
  if (namespace === undefined || resource.namespaced) return;
  throw new WatchfireError("WF_KUBE_CLUSTER_SCOPED", {
    what: `${apiVersionOf(resource)} ${resource.kind} is not in namespaces, so not in ${namespace}`,
  });
}

/** Returns `v1` or `apps/v1`. */
export function apiVersionOf(of: Pick<Resource, "group" | "version">): string {
  return of.group === "" ? of.version : `${of.group}/${of.version}`;
}

/** Inverse of `apiVersionOf`. */
export function splitApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return slash < 0
    ? { group: "", version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** Accepts 404 (not served) and 406 (the server does not support the aggregated form); rethrows other errors. */
function absent(error: unknown): undefined {
  if (error instanceof ApiError && (error.status === 404 || error.status === 406)) return undefined;
  throw error;
}
