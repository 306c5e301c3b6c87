import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { pause, systemClock } from "../base/clock.ts";
import { placeText, WatchfireError } from "../base/errors.ts";
import { lowerFirst } from "../base/wording.ts";
import type { Path } from "../document/path.ts";
import { ApiError, readApiError } from "../kube/api-error.ts";
import { applyBody, applyType } from "../kube/apply-body.ts";
import type { Discovery } from "../kube/discovery.ts";
import { type Resource, resourcePath } from "../kube/resource.ts";
import { warningsIn } from "../kube/server-warning.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { declaresOnly, readSamples, type SampleObject } from "./sample-file.ts";
import type { SampleRecord } from "./sample-record.ts";

/** File next to a function's manifest with objects for the function to react to. */
const sampleFile = "sample.yaml";

/** Annotation with the time at which a sample was last emitted by hand. */
const emittedAnnotation = "watchfire.dev/emitted";

/** Only the name of a CustomResourceDefinition is checked here; the API server checks the rest. */
const definitionKind = "CustomResourceDefinition";

/** The part of a definition's spec that says which kind it serves. */
const definitionSpec = z.object({
  group: z.string(),
  names: z.object({ kind: z.string() }),
  versions: z.array(z.object({ name: z.string(), served: z.boolean() })),
});

/** How long a kind's serving is waited for after its definition was applied, and how often it is looked for, in milliseconds. */
const servedLimitMs = 10_000;
const servedAskMs = 50;

/** Receives each warning of the API server about an object of a file, with the object's place. */
type Warned = (text: string, place: string) => void;

const unheard: Warned = () => undefined;

/** Result of applying the samples. */
interface SampleReport {
  /** WF_DEV_SAMPLE: samples that could not be applied, and are tried again next time. */
  readonly faults: readonly WatchfireError[];
  /** Recorded files of which an object is gone. */
  readonly gone: readonly string[];
}

/**
 * Applies the samples next to the manifests, in the order of their documents, so that a new user sees a function run without
 * typing anything. Only used with the embedded cluster, after the definitions; each sample is applied once, as recorded.
 */
export async function applySamples(
  manifestFiles: readonly string[],
  transport: KubeTransport,
  discovery: Discovery,
  record: SampleRecord,
  warned: Warned,
): Promise<SampleReport> {
  const samples = samplesBeside(manifestFiles);
  const faults: WatchfireError[] = [];
  const gone: string[] = [];
  for (const sample of samples) {
    try {
      if (!record.has(sample)) {
        for (const each of readSamples(sample)) await apply(each, transport, discovery, warned);
        record.add(sample);
      } else if (await isGone(sample, transport, discovery)) gone.push(sample);
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      faults.push(error);
    }
  }
  return { faults, gone };
}

/**
 * Applies the definitions next to the manifests, and then the samples again, with an annotation holding the time (`stamp`), so that each causes a change or
 * recreates an object. Returns the objects' names.
 * @throws WatchfireError WF_DEV_SAMPLE
 */
export async function emitSamples(
  manifestFiles: readonly string[],
  transport: KubeTransport,
  discovery: Discovery,
  stamp: string,
  warned: Warned,
): Promise<string[]> {
  for (const file of definitionsBeside(manifestFiles)) await applyDefinitions(file, transport, discovery, warned);
  const samples = samplesBeside(manifestFiles).flatMap(readSamples);
  return emitObjects(samples, transport, discovery, stamp, warned);
}

/** Applies objects in order, as `emitSamples` does. Returns their names. @throws WatchfireError WF_DEV_SAMPLE */
export async function emitObjects(
  samples: readonly SampleObject[],
  transport: KubeTransport,
  discovery: Discovery,
  stamp: string,
  warned: Warned,
): Promise<string[]> {
  const emitted: string[] = [];
  for (const sample of samples) {
    const { metadata } = sample.object;
    const annotations = { ...(metadata.annotations as object | undefined), [emittedAnnotation]: stamp };
    const object = { ...sample.object, metadata: { ...metadata, annotations } };
    await apply({ ...sample, object }, transport, discovery, warned);
    emitted.push(`${object.kind} ${metadata.name}`);
  }
  return emitted;
}

/** Returns the sample files next to the manifests. */
export const samplesBeside = (manifestFiles: readonly string[]): string[] =>
  [...new Set(manifestFiles.map((file) => join(dirname(file), sampleFile)))].filter(existsSync);

/** Whether an object of the file does not exist. */
async function isGone(file: string, transport: KubeTransport, discovery: Discovery): Promise<boolean> {
  for (const { object } of readSamples(file)) {
    const found = await discovery.resolve(object.apiVersion, object.kind);
    if (found.type === "NotServed") return true;
    try {
      await transport.json({ method: "GET", path: pathOf(object, found.resource) });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return error.status === 404;
    }
  }
  return false;
}

/**
 * Applies the CustomResourceDefinitions of a file, and waits until their kinds are served. Default of `warned`: warnings are ignored.
 * @throws WatchfireError WF_DEV_SAMPLE
 */
export async function applyDefinitions(
  file: string,
  transport: KubeTransport,
  discovery: Discovery,
  warned: Warned = unheard,
): Promise<void> {
  for (const each of readSamples(file)) {
    await apply(each, transport, discovery, warned);
    await untilServed(each, transport, discovery);
  }
}

/** A real API server serves a kind up to a second after its definition. */
async function untilServed(
  { object, fault }: SampleObject,
  transport: KubeTransport,
  discovery: Discovery,
): Promise<void> {
  const { data: spec } = definitionSpec.safeParse(object.spec);
  const version = spec?.versions.find(({ served }) => served)?.name;
  if (!spec || version === undefined) return;
  const deadline = systemClock.monotonic() + servedLimitMs;
  for (;;) {
    const found = await discovery.resolve(`${spec.group}/${version}`, spec.names.kind);
    if (found.type === "Served" && (await isListed(found.resource, transport))) return;
    if (systemClock.monotonic() > deadline) {
      throw fault(
        ["spec", "names"],
        found.type === "NotServed" ? found.reason : "the API server does not list the kind",
      );
    }
    await pause(systemClock, servedAskMs);
  }
}

async function isListed(resource: Resource, transport: KubeTransport): Promise<boolean> {
  try {
    await transport.json({ method: "GET", path: resourcePath(resource), query: { limit: "1" } });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}

/** Returns the files next to the manifests that contain only CustomResourceDefinitions. */
export const definitionsBeside = (manifestFiles: readonly string[]): string[] =>
  [...new Set(manifestFiles.map((file) => dirname(file)))].flatMap((folder) =>
    (unlessGone(() => readdirSync(folder)) ?? [])
      .filter((name) => /\.ya?ml$/.test(name) && name !== sampleFile)
      .map((name) => join(folder, name))
      .filter((file) => declaresOnly(file, definitionKind)),
  );

/** Returns what `read` returns; `undefined` if its file or folder was removed or renamed, which its author may do at any time. */
export function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function apply(
  { object, fault }: SampleObject,
  transport: KubeTransport,
  discovery: Discovery,
  warned: Warned,
): Promise<void> {
  const found = await discovery.resolve(object.apiVersion, object.kind);
  if (found.type === "NotServed") throw fault(["kind"], found.reason);
  const { namespace, ...clusterScoped } = object.metadata;
  const metadata = found.resource.namespaced ? object.metadata : clusterScoped;
  try {
    const response = await transport.request({
      method: "PATCH",
      path: pathOf(object, found.resource),
      query: { fieldManager: "watchfire-dev", force: "true" },
      headers: { "content-type": applyType },
      body: applyBody({ ...object, metadata }),
    });
    if (response.status >= 300) throw await readApiError(response);
    response.body.resume();
    const { place } = fault([], "").detail;
    for (const text of warningsIn(response.headers.warning)) warned(text, place ? placeText(place) : "");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const field = error.details?.causes?.find((cause) => cause.field !== undefined)?.field;
    throw fault(field === undefined ? ["metadata", "name"] : pathIn(field), lowerFirst(error.message));
  }
}

/** An invalid name is left for the API server to refuse. */
const pathOf = ({ metadata: { name, namespace } }: SampleObject["object"], resource: Resource): string =>
  resourcePath(resource, namespace, name);

/** Parses a path written by an API server, such as `spec.ports[0].name`. */
const pathIn = (field: string): Path =>
  (field.match(/[^.[\]]+/g) ?? []).map((step) => (/^\d+$/.test(step) ? Number(step) : step));
