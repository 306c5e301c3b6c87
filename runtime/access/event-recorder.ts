import type { Clock, Random } from "../base/clock.ts";
import { TokenBucket } from "../base/token-bucket.ts";
import { ApiError } from "../kube/api-error.ts";
import type { LastLook } from "../kube/last-look.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeRequest, KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { ownApiVersion } from "../manifest/function.ts";
import type { Caller } from "../sandbox/host-calls.ts";
import { callErrorOf } from "./api-answer.ts";
import type { ArgumentsOf } from "./arguments.ts";
import { type EventSeries, SeriesCache, timestamp } from "./event-series.ts";
import { CallFailure, withheld } from "./failure.ts";
import { isGranted, type RequestAttributes } from "./grants.ts";
import { assertGranted } from "./kube-calls.ts";
import type { OwnObjects } from "./own-objects.ts";

/**
 * Rate limit of one function's Events. client-go allows an object 25 at once and one every five minutes; a function has many
 * objects.
 */
const burst = 100;
const perSecond = 2;
/** Maximum size of a message, in bytes (`pkg/apis/core/validation/events.go`, NoteLengthLimit). */
const messageLimit = 1024;

interface RecorderParts {
  /** Returns the connection under which a function writes. */
  readonly transportOf: (functionName: string) => KubeTransport;
  readonly own: OwnObjects;
  readonly clock: Clock;
  readonly random: Random;
  /** Timeout of one request, in milliseconds. */
  readonly timeoutMs: number;
  /** Called as each request is sent. */
  readonly lastLook?: LastLook | undefined;
}

type Emit = ArgumentsOf<"events.emit">;

/**
 * Writes core/v1 Events. Repeats increase the count of one Event. Beyond its rate a function writes nothing; events are counted,
 * and the next write shows the count. A namespace that is gone fails no handler; any other refusal does.
 */
export class EventRecorder {
  private readonly parts: RecorderParts;
  private readonly series: SeriesCache;
  private readonly buckets = new Map<string, TokenBucket>();
  private written = 0;

  constructor(parts: RecorderParts) {
    this.parts = parts;
    this.series = new SeriesCache(parts.clock);
  }

  /** Returns `null` as JSON. Throws CallFailure. */
  async emit(caller: Caller, manifest: FunctionManifest, args: Emit, signal: AbortSignal): Promise<string> {
    const object = isTrigger(caller, args.object) ? caller.object : args.object;
    // An Event is in its object's namespace. For a cluster-scoped object it is in `default`, as in client-go.
    const namespace = object.namespace || "default";
    const demand: RequestAttributes = { group: "", resource: "events", verb: "create", namespace };
    const allowed = object === caller.object || isGranted(manifest.permissions, { ...demand, group: "events.k8s.io" });
    if (!allowed) assertGranted(manifest, demand);
    // A handler may write about the object that triggered it, because the runtime delivered it.
    const objection = object === caller.object ? undefined : this.parts.own.eventObjection(object);
    if (objection) throw withheld(objection);
    const message = cut(args.message);
    const about = [
      manifest.name,
      namespace,
      object.apiVersion,
      object.kind,
      object.name,
      object.uid,
      args.type,
      args.reason,
    ];
    const series = this.series.count(JSON.stringify(about), message);
    if (!this.bucketOf(manifest.name).take()) return "null";
    const text = series.merged ? cut(`(combined from similar events): ${message}`) : message;
    const event = eventOf(manifest.name, { ...args, object }, text, series);
    const write = () => this.write(this.parts.transportOf(manifest.name), series, namespace, event, signal);
    const written = series.tail.then(write, write);
    series.tail = written.catch(() => {});
    try {
      await written;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!isGoneNamespace(error)) throw new CallFailure(callErrorOf(error, demand));
    }
    return "null";
  }

  private async write(
    transport: KubeTransport,
    series: EventSeries,
    namespace: string,
    event: object,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, timeoutMs, lastLook } = this.parts;
    const collection = { group: "", version: "v1", plural: "events", namespaced: true };
    const lastTimestamp = timestamp(clock);
    const counted = { count: series.count, lastTimestamp };
    const query = { fieldManager: "watchfire" };
    const common = { purpose: "call" as const, timeoutMs, lastLook, signal, query };
    if (series.name !== undefined) {
      const request: KubeRequest = {
        ...common,
        method: "PATCH",
        path: resourcePath(collection, namespace, series.name),
        headers: { "content-type": "application/merge-patch+json" },
        body: JSON.stringify({ ...counted, message: (event as { message: string }).message }),
      };
      try {
        await transport.json(request);
        return;
      } catch (error) {
        // Events are kept for an hour by default, so the counted one may be gone.
        if (!(error instanceof ApiError) || error.status !== 404) throw error;
      }
    }
    const name = eventName((event as { involvedObject: { name: string } }).involvedObject.name, this.mark());
    await transport.json({
      ...common,
      method: "POST",
      path: resourcePath(collection, namespace),
      body: JSON.stringify({ ...event, ...counted, metadata: { name, namespace }, firstTimestamp: series.firstAt }),
    });
    series.name = name;
  }

  /** Returns a unique suffix: time, a random part to distinguish runtimes, and a number within the millisecond. */
  private mark(): string {
    const { clock, random } = this.parts;
    const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");
    this.written = (this.written + 1) % 2 ** 16;
    return `${hex(clock.now(), 11)}${hex(Math.floor(random() * 2 ** 24), 6)}${hex(this.written, 4)}`;
  }

  private bucketOf(name: string): TokenBucket {
    let bucket = this.buckets.get(name);
    if (!bucket) {
      bucket = new TokenBucket(this.parts.clock, burst, perSecond);
      this.buckets.set(name, bucket);
    }
    return bucket;
  }
}

/** True for the object that triggered the handler, which needs no grant. */
function isTrigger({ object }: Caller, named: Emit["object"]): boolean {
  // A schedule or a batch is not an object.
  if (object.apiVersion === ownApiVersion) return false;
  return (
    named.apiVersion === object.apiVersion &&
    named.kind === object.kind &&
    named.name === object.name &&
    (named.namespace ?? "") === object.namespace &&
    (named.uid === undefined || named.uid === object.uid)
  );
}

function eventOf(functionName: string, { object, type, reason }: Emit, message: string, { merged }: EventSeries) {
  const { apiVersion, kind, name, namespace, uid, resourceVersion } = object;
  const involvedObject = { apiVersion, kind, name, ...(namespace && { namespace }), ...(uid && { uid }) };
  return {
    apiVersion: "v1",
    kind: "Event",
    // Merged messages belong to different versions of the object.
    involvedObject: { ...involvedObject, ...(resourceVersion && !merged && { resourceVersion }) },
    type,
    reason,
    message,
    source: { component: `watchfire/${functionName}` },
    reportingComponent: `watchfire.dev/${functionName}`,
    reportingInstance: "",
  };
}

/** Returns the object's name with a suffix, as client-go does. Characters that an Event's name cannot have are replaced. */
function eventName(objectName: string, mark: string): string {
  const base = objectName
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, "-")
    .replace(/\.(?=[.-])|(?<=[.-])\./g, "-")
    .replace(/^[.-]+|[.-]+$/g, "")
    .slice(0, 200)
    .replace(/[.-]+$/, "");
  return `${base || "object"}.${mark}`;
}

/** True if the namespace is being deleted or gone. The Event is then dropped, as in client-go. */
function isGoneNamespace(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  const terminating = error.details?.causes?.some(({ reason }) => reason === "NamespaceTerminating") ?? false;
  return error.status === 404 || (error.status === 403 && terminating);
}

/** Returns the first 1024 bytes, without splitting a character. */
function cut(message: string): string {
  const bytes = Buffer.from(message, "utf8");
  if (bytes.length <= messageLimit) return message;
  return `${new TextDecoder().decode(bytes.subarray(0, messageLimit - 3)).replace(/\uFFFD+$/, "")}…`;
}
