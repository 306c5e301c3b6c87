import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { showPath } from "../document/path.ts";
import { WatchfireError } from "../errors.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { lowerFirst } from "../wording.ts";
import type { SampleRecord } from "./sample-record.ts";

/** Beside a function's manifest: objects for it to react to. */
const sampleFile = "sample.yaml";

const sampleSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().default("default"),
  }),
});

/** Of a CustomResourceDefinition, its name is enough here; the API server checks the rest. */
const definitionKind = "CustomResourceDefinition";

/**
 * Applies the samples that lie beside the manifests, in the order of their documents and after the definitions beside them, so that a newcomer sees a function
 * run without typing anything. Only for a cluster that is ours: the embedded one; and each sample once, as the record has it.
 * Gives those that the record has and an object of which is gone.
 * @throws WatchfireError WF_DEV_SAMPLE for a document that is no object or whose kind is not served
 */
export async function applySamples(
  manifestFiles: readonly string[],
  transport: KubeTransport,
  discovery: Discovery,
  record: SampleRecord,
): Promise<string[]> {
  const samples = [...new Set(manifestFiles.map((file) => join(dirname(file), sampleFile)))].filter(existsSync);
  const gone: string[] = [];
  for (const sample of samples) {
    if (record.has(sample)) {
      if (await isGone(sample, transport, discovery)) gone.push(sample);
      continue;
    }
    for (const file of [...definitionsBeside(sample), sample]) {
      for (const each of objectsOf(file)) await apply(each, file, transport, discovery);
    }
    record.add(sample);
  }
  return gone;
}

type Sample = z.infer<typeof sampleSchema>;

function* objectsOf(file: string): Generator<Sample> {
  for (const document of parseAllDocuments(readFileSync(file, "utf8"))) {
    const sample = sampleSchema.safeParse(document.toJS());
    if (!sample.success) {
      const [issue] = sample.error.issues;
      const path = showPath(issue?.path ?? []);
      const what = lowerFirst(issue?.message ?? "it is no object").replace(/^invalid input: /, "");
      throw new WatchfireError("WF_DEV_SAMPLE", { what, place: { file }, path });
    }
    yield sample.data;
  }
}

/** Whether an object of it is not there. */
async function isGone(file: string, transport: KubeTransport, discovery: Discovery): Promise<boolean> {
  for (const { apiVersion, kind, metadata } of objectsOf(file)) {
    const found = await discovery.resolve(apiVersion, kind);
    if (found.type === "NotServed") return true;
    const path = resourcePath(found.resource, metadata.namespace, metadata.name);
    try {
      await transport.json({ method: "GET", path });
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return true;
      throw error;
    }
  }
  return false;
}

/** The other files of a sample's folder whose documents are all CustomResourceDefinitions. */
function definitionsBeside(sample: string): string[] {
  const folder = dirname(sample);
  return readdirSync(folder)
    .filter((name) => /\.ya?ml$/.test(name) && name !== sampleFile)
    .map((name) => join(folder, name))
    .filter((file) => {
      const kinds = parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.get?.("kind"));
      return kinds.length > 0 && kinds.every((kind) => kind === definitionKind);
    });
}

async function apply(sample: Sample, file: string, transport: KubeTransport, discovery: Discovery): Promise<void> {
  const { apiVersion, kind, metadata } = sample;
  const found = await discovery.resolve(apiVersion, kind);
  if (found.type === "NotServed") throw new WatchfireError("WF_DEV_SAMPLE", { what: found.reason, place: { file } });
  const { namespaced } = found.resource;
  const { namespace, ...clusterScoped } = metadata;
  await transport.json({
    method: "PATCH",
    path: resourcePath(found.resource, namespace, metadata.name),
    query: { fieldManager: "watchfire-dev", force: "true" },
    headers: { "content-type": "application/apply-patch+yaml" },
    body: JSON.stringify({ ...sample, metadata: namespaced ? metadata : clusterScoped }),
  });
}
