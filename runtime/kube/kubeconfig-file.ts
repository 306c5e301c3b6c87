import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import { type ManifestDocument, readFirstDocument } from "../document/document.ts";
import { showPath } from "../document/path.ts";
import { decodeUtf8 } from "../document/utf8.ts";
import { goYaml } from "./go-yaml.ts";

// A kubeconfig file as client-go decodes it (`tools/clientcmd/api/v1/types.go`, `loader.go`). Null counts as an absent field, and
// unknown fields are ignored. One value of a wrong type makes the whole file unusable for every user. Errors name only the place
// of an unusable value, because the value may be a credential.

const text = z
  .string({ error: "expected a text" })
  .nullish()
  .transform((value) => value ?? "");
const flag = z
  .boolean({ error: "expected true or false" })
  .nullish()
  .transform((value) => value ?? false);
const listOf = <Item extends z.ZodType>(item: Item) =>
  z
    .array(item, { error: "expected a list" })
    .nullish()
    .transform((items) => items ?? []);
const mapOf = <Value extends z.ZodType>(value: Value) =>
  z
    .record(z.string(), value, { error: "expected a map" })
    .nullish()
    .transform((map) => map ?? {});
const struct = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.preprocess((value) => value ?? {}, z.object(shape, { error: "expected a map" }));

const base64 = /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/;

/** Whether Go's `encoding/base64` accepts a text: line breaks are ignored, and the padding must be complete. */
export function isBase64(text: string): boolean {
  return base64.test(text.replace(/[\r\n]/g, ""));
}

const data = text.refine(isBase64, { error: "expected base64" }).transform((value) => Buffer.from(value, "base64"));

/** Converts a list of named entries to a map. */
const named = <Key extends string, Value extends z.ZodType>(key: Key, value: Value) =>
  listOf(struct({ name: text, [key]: value } as { name: typeof text } & Record<Key, Value>)).transform(
    (items, context) => {
      const entries = new Map<string, z.infer<Value>>();
      for (const [index, item] of items.entries()) {
        const { name, [key]: entry } = item as { name: string } & Record<Key, z.infer<Value>>;
        if ((entries.get(name) ?? undefined) !== undefined) {
          const message = `${JSON.stringify(name)} is the name of an entry before this one`;
          context.addIssue({ code: "custom", path: [index, "name"], message });
        }
        entries.set(name, entry);
      }
      return entries;
    },
  );

const extensions = named("extension", z.unknown().optional());

const cluster = struct({
  server: text,
  "tls-server-name": text,
  "insecure-skip-tls-verify": flag,
  "certificate-authority": text,
  "certificate-authority-data": data,
  "proxy-url": text,
  "disable-compression": flag,
  extensions,
});

const exec = z
  .object(
    {
      apiVersion: text,
      command: text,
      args: listOf(text),
      env: listOf(struct({ name: text, value: text })),
      installHint: text,
      provideClusterInfo: flag,
      interactiveMode: text,
    },
    { error: "expected a map" },
  )
  .nullish();

const authProvider = z.object({ name: text, config: mapOf(text) }, { error: "expected a map" }).nullish();

const user = struct({
  "client-certificate": text,
  "client-certificate-data": data,
  "client-key": text,
  "client-key-data": data,
  token: text,
  tokenFile: text,
  as: text,
  "as-uid": text,
  "as-groups": listOf(text),
  "as-user-extra": mapOf(listOf(text)),
  username: text,
  password: text,
  "auth-provider": authProvider,
  exec,
  extensions,
});

const context = struct({ cluster: text, user: text, namespace: text, extensions });

const schema = z.preprocess(
  (value) => value ?? {},
  z.object(
    {
      kind: text.refine((kind) => kind === "" || kind === "Config", { error: "expected Config" }),
      apiVersion: text.refine((version) => version === "" || version === "v1", { error: "expected v1" }),
      preferences: struct({ colors: flag, extensions }),
      clusters: named("cluster", cluster),
      users: named("user", user),
      contexts: named("context", context),
      "current-context": text,
      extensions,
    },
    { error: "the kubeconfig is not a map" },
  ),
);

/** The file that contains an entry. */
interface Located {
  readonly file: string;
}
/** A cluster of a kubeconfig: how to reach it. Absent texts are empty, paths absolute. */
export type KubeconfigCluster = z.infer<typeof cluster> & Located;
/** A user of a kubeconfig: who to be there. Absent texts are empty, paths absolute. */
export type KubeconfigUser = z.infer<typeof user> & Located;
/** The `exec` section of a kubeconfig's user. */
export type ExecSpec = NonNullable<z.infer<typeof exec>>;

/** A kubeconfig's entries by name, and its current context, which may be empty. */
export interface Kubeconfig {
  readonly clusters: Map<string, KubeconfigCluster>;
  readonly users: Map<string, KubeconfigUser>;
  readonly contexts: Map<string, z.infer<typeof context> & Located>;
  readonly currentContext: string;
}

/**
 * Reads a kubeconfig; the error for an unusable one says what is wrong and where.
 * @returns `undefined` if the file does not exist
 * @throws WatchfireError WF_KUBE_CONFIG
 */
export async function readKubeconfig(file: string): Promise<Kubeconfig | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    const what = code === "EISDIR" ? "it is a folder, not a file" : `it cannot be read: ${systemReason(error)}`;
    throw configFault({ what, place: { file }, cause: error });
  }
  const text = decode(bytes, file);
  if (/^%YAML +(?!1\.1\s)/.test(text)) {
    throw configFault({ what: "kubectl reads YAML 1.1, and the file says that it is another", place: { file } });
  }
  const document = readFirstDocument(text, file, goYaml);
  const [fault] = document?.faults ?? [];
  if (fault) throw configFault(fault.detail);
  const read = schema.safeParse(document?.value);
  if (!read.success) throw shapeFault(read.error, document, file);
  return resolved(read.data, file);
}

/** Decodes UTF-16 with a byte order mark as well: PowerShell writes it, and kubectl reads it. */
function decode(bytes: Buffer, file: string): string {
  const mark = bytes.toString("latin1", 0, 2);
  if (mark === "\xff\xfe") return new TextDecoder("utf-16le").decode(bytes);
  if (mark === "\xfe\xff") return new TextDecoder("utf-16be").decode(bytes);
  return decodeUtf8(bytes, file, "WF_KUBE_CONFIG");
}

/**
 * Makes paths absolute: they are relative to the folder of their file. A plugin's name without a slash is left alone, because it
 * is searched on PATH.
 */
function resolved(config: z.infer<typeof schema>, file: string): Kubeconfig {
  const folder = dirname(resolve(file));
  const absolute = (path: string) => (path === "" || path.startsWith("/") ? path : resolve(folder, path));
  return {
    clusters: eachOf(config.clusters, (each) => ({
      ...each,
      file,
      "certificate-authority": absolute(each["certificate-authority"]),
    })),
    users: eachOf(config.users, (each) => ({
      ...each,
      file,
      "client-certificate": absolute(each["client-certificate"]),
      "client-key": absolute(each["client-key"]),
      tokenFile: absolute(each.tokenFile),
      exec: each.exec?.command.includes("/")
        ? { ...each.exec, command: resolve(folder, each.exec.command) }
        : each.exec,
    })),
    contexts: eachOf(config.contexts, (each) => ({ ...each, file })),
    currentContext: config["current-context"],
  };
}

const eachOf = <From, To>(entries: ReadonlyMap<string, From>, change: (entry: From) => To): Map<string, To> =>
  new Map([...entries].map(([name, entry]) => [name, change(entry)]));

function shapeFault({ issues }: z.ZodError, document: ManifestDocument | undefined, file: string): WatchfireError {
  const [issue] = issues;
  const path = issue?.path ?? [];
  const place = document?.place(path) ?? { file };
  return configFault({ what: issue?.message ?? "it cannot be used", place, path: showPath(path) });
}

/** Returns the error of an unusable kubeconfig. */
export const configFault = (detail: WatchfireError["detail"]): WatchfireError =>
  new WatchfireError("WF_KUBE_CONFIG", detail);
