import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { ApiError } from "../kube/api-error.ts";
import { resourcePath } from "../kube/resource.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { OwnObjects } from "./own-objects.ts";

/** Maximum size of a response, in bytes. A Secret or ConfigMap holds 1 MiB (`core/v1` MaxSecretSize), and base64 adds a third. */
const objectLimit = 2 * 1024 * 1024;

const dataSchema = z.looseObject({ data: z.record(z.string(), z.string()).nullish() });

/** A function's environment, for its isolate only. */
export interface ResolvedEnv {
  readonly values: Readonly<Record<string, string>>;
  /** Values from Secrets and ConfigMaps, which the redactor must know. */
  readonly sensitive: { readonly secrets: readonly string[]; readonly configuration: readonly string[] };
}

/** A `.env` file. Its variables take the place of references to Secrets of the same name. */
export interface LocalEnv {
  readonly file: string;
  /** Returns a function's variables; `undefined` if there is no file. @throws WatchfireError WF_ACCESS_ENV */
  read(functionName: string): Readonly<Record<string, string>> | undefined;
}

interface EnvParts {
  readonly transport: KubeTransport;
  /** The runtime's namespace. */
  readonly namespace: string;
  readonly own: Pick<OwnObjects, "isSecret">;
  /** Default: every reference is read from the cluster. */
  readonly localEnv?: LocalEnv | undefined;
}

/**
 * Reads the objects that the manifest's `env` refers to, each once, in the runtime's namespace and with the transport's account.
 * A variable of `localEnv` is used in place of a reference to a Secret, which is then not read.
 * @throws WatchfireError WF_ACCESS_ENV naming variable, object and key, never a value; errors of the transport
 */
export async function resolveEnv(
  manifest: Pick<FunctionManifest, "name" | "file" | "env">,
  { transport, namespace, own, localEnv }: EnvParts,
  signal?: AbortSignal,
): Promise<ResolvedEnv> {
  const objects = new Map<string, Promise<Readonly<Record<string, string>> | undefined>>();
  const read = (plural: "secrets" | "configmaps", name: string) => {
    const path = resourcePath({ group: "", version: "v1", plural, namespaced: true }, namespace, name);
    let data = objects.get(path);
    if (!data) {
      data = readData(transport, path, signal);
      objects.set(path, data);
    }
    return data;
  };
  const local = localEnv?.read(manifest.name);
  const values = new Map<string, string>();
  const secrets: string[] = [];
  const configuration: string[] = [];
  for (const { name, value, secretKeyRef, configMapKeyRef } of manifest.env) {
    const ref = secretKeyRef ?? configMapKeyRef;
    if (!ref) {
      values.set(name, value ?? "");
      continue;
    }
    const plural = secretKeyRef ? "secrets" : "configmaps";
    if (secretKeyRef && own.isSecret(ref.name)) {
      throw new WatchfireError("WF_ACCESS_OWN_OBJECT", {
        what: `the variable ${name} of ${manifest.name} would hold the runtime's own Secret ${ref.name}`,
        place: { file: manifest.file },
        path: "spec.env",
      });
    }
    if (secretKeyRef && local && Object.hasOwn(local, name)) {
      const text = local[name] ?? "";
      values.set(name, text);
      secrets.push(text);
      continue;
    }
    const data = await read(plural, ref.name);
    const found = data && Object.hasOwn(data, ref.key) ? data[ref.key] : undefined;
    const source = `${plural}/${ref.name} in namespace ${namespace}`;
    if (found === undefined) {
      if (ref.optional) continue;
      const what = data ? `${source} has no key ${JSON.stringify(ref.key)}` : `there is no ${source}`;
      const also = secretKeyRef && localEnv ? `, and ${name} is not in ${localEnv.file}` : "";
      throw fault(manifest, name, `${what}${also}`);
    }
    const text = secretKeyRef ? decodeSecret(found) : found;
    if (text === undefined)
      throw fault(manifest, name, `key ${JSON.stringify(ref.key)} of ${source} is not UTF-8 text`);
    values.set(name, text);
    (secretKeyRef ? secrets : configuration).push(text);
  }
  return { values: Object.fromEntries(values), sensitive: { secrets, configuration } };
}

/** Returns `undefined` if the object does not exist. */
async function readData(
  transport: KubeTransport,
  path: string,
  signal?: AbortSignal,
): Promise<Record<string, string> | undefined> {
  try {
    const object = await transport.json<unknown>({ method: "GET", path, ...(signal && { signal }) }, objectLimit);
    return dataSchema.parse(object).data ?? {};
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function decodeSecret(base64: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(base64, "base64"));
  } catch {
    return undefined;
  }
}

function fault(manifest: Pick<FunctionManifest, "name" | "file">, variable: string, what: string): WatchfireError {
  return new WatchfireError("WF_ACCESS_ENV", {
    what: `the variable ${variable} of ${manifest.name} cannot be read: ${what}`,
    place: { file: manifest.file },
    path: "spec.env",
  });
}
