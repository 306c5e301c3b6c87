import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { lowerFirst } from "../base/wording.ts";
import type { Path } from "../document/path.ts";
import { ApiError } from "../kube/api-error.ts";
import { applyBody, applyType } from "../kube/apply-body.ts";
import type { Discovery } from "../kube/discovery.ts";
import { type Resource, resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { declaresOnly, readSamples, type SampleObject } from "./sample-file.ts";
import type { SampleRecord } from "./sample-record.ts";

/** Beside a function's manifest: objects for it to react to. */
const sampleFile = "sample.yaml";

/** When a sample was last emitted by hand. */
const emittedAnnotation = "watchfire.dev/emitted";

/** Of a CustomResourceDefinition, its name is enough here; the API server checks the rest. */
const definitionKind = "CustomResourceDefinition";

/** What a look at the samples came to. */
interface SampleReport {
  /** WF_DEV_SAMPLE: what could not be applied, and is tried again at the next look. */
  readonly faults: readonly WatchfireError[];
  /** The files that the record has and an object of which is gone. */
  readonly gone: readonly string[];
}

/**
 * Applies the samples that lie beside the manifests, in the order of their documents and after the definitions beside
 * them. So a newcomer sees a function run without typing anything. Only for a cluster that is ours: the embedded one;
 * and each sample once, as the record has it.
 */
export async function applySamples(
  manifestFiles: readonly string[],
  transport: KubeTransport,
  discovery: Discovery,
  record: SampleRecord,
): Promise<SampleReport> {
  const samples = samplesBeside(manifestFiles);
  const faults: WatchfireError[] = [];
  const gone: string[] = [];
  for (const sample of samples) {
    try {
      if (!record.has(sample)) {
        await applyDefinitions(sample, transport, discovery);
        for (const each of readSamples(sample)) await apply(each, transport, discovery);
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
 * Applies the samples beside the manifests once more, with an annotation that says when (`stamp`). So each is a change, or
 * an object that comes back. Gives the objects' names.
 * @throws WatchfireError WF_DEV_SAMPLE
 */
export async function emitSamples(
  manifestFiles: readonly string[],
  transport: KubeTransport,
  discovery: Discovery,
  stamp: string,
): Promise<string[]> {
  const emitted: string[] = [];
  for (const file of samplesBeside(manifestFiles)) {
    for (const sample of readSamples(file)) {
      const { metadata } = sample.object;
      const annotations = { ...(metadata.annotations as object | undefined), [emittedAnnotation]: stamp };
      const object = { ...sample.object, metadata: { ...metadata, annotations } };
      await apply({ ...sample, object }, transport, discovery);
      emitted.push(`${object.kind} ${metadata.name}`);
    }
  }
  return emitted;
}

const samplesBeside = (manifestFiles: readonly string[]): string[] =>
  [...new Set(manifestFiles.map((file) => join(dirname(file), sampleFile)))].filter(existsSync);

/** Whether an object of it is not there. */
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

/** Applies the CustomResourceDefinitions that lie beside a file. @throws WatchfireError WF_DEV_SAMPLE */
export async function applyDefinitions(file: string, transport: KubeTransport, discovery: Discovery): Promise<void> {
  for (const definitions of definitionsBeside(file)) {
    for (const each of readSamples(definitions)) await apply(each, transport, discovery);
  }
}

/** The other files of a folder whose documents are all CustomResourceDefinitions. */
function definitionsBeside(file: string): string[] {
  const folder = dirname(file);
  return readdirSync(folder)
    .filter((name) => /\.ya?ml$/.test(name) && name !== sampleFile)
    .map((name) => join(folder, name))
    .filter((file) => declaresOnly(file, definitionKind));
}

async function apply({ object, fault }: SampleObject, transport: KubeTransport, discovery: Discovery): Promise<void> {
  const found = await discovery.resolve(object.apiVersion, object.kind);
  if (found.type === "NotServed") throw fault(["kind"], found.reason);
  const { namespace, ...clusterScoped } = object.metadata;
  const metadata = found.resource.namespaced ? object.metadata : clusterScoped;
  try {
    await transport.json({
      method: "PATCH",
      path: pathOf(object, found.resource),
      query: { fieldManager: "watchfire-dev", force: "true" },
      headers: { "content-type": applyType },
      body: applyBody({ ...object, metadata }),
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const field = error.details?.causes?.find((cause) => cause.field !== undefined)?.field;
    throw fault(field === undefined ? ["metadata", "name"] : pathIn(field), lowerFirst(error.message));
  }
}

/** A mistaken name is for the API server to refuse. */
const pathOf = ({ metadata: { name, namespace } }: SampleObject["object"], resource: Resource): string =>
  resourcePath(resource, namespace, name);

/** The path that an API server writes, such as `spec.ports[0].name`. */
const pathIn = (field: string): Path =>
  (field.match(/[^.[\]]+/g) ?? []).map((step) => (/^\d+$/.test(step) ? Number(step) : step));
