import { readFile } from "node:fs/promises";
import { z } from "zod";
import { type ManifestDocument, readDocuments } from "../document/document.ts";
import { showPath } from "../document/path.ts";
import { decodeUtf8 } from "../document/utf8.ts";
import { WatchfireError } from "../errors.ts";
import { systemReason } from "../wording.ts";
import { impersonationSchema } from "./impersonation.ts";

// What a kubeconfig holds, as far as a mistake in it would otherwise show as something else. Of a value that cannot be
// used only the place is told: it may be a credential.
const text = (what = "a text") => z.string({ error: `expected ${what}` });
const optional = text().nullish();
const map = "expected a map";
const listOf = <Item extends z.ZodType>(item: Item) => z.array(item, { error: "expected a list" }).nullish();
const named = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.looseObject({ name: text("a name"), ...shape }, { error: map });

const isHttpUrl = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);

const server = z
  .string({ error: "expected an http or https URL" })
  .refine(isHttpUrl, { error: "expected an http or https URL" });

const cluster = z.looseObject(
  {
    server,
    "certificate-authority": optional,
    "certificate-authority-data": optional,
    "tls-server-name": optional,
    "proxy-url": optional,
  },
  { error: map },
);

const user = z
  .looseObject(
    {
      ...impersonationSchema.shape,
      token: optional,
      tokenFile: text().optional(),
      "client-certificate": optional,
      "client-certificate-data": optional,
      "client-key": optional,
      "client-key-data": optional,
      username: optional,
      password: optional,
    },
    { error: map },
  )
  .nullish();

const context = z.looseObject(
  { cluster: text("a cluster's name"), user: optional, namespace: optional },
  { error: map },
);

const schema = z.looseObject(
  {
    clusters: listOf(named({ cluster })),
    users: listOf(named({ user })),
    contexts: listOf(named({ context })),
    "current-context": optional,
  },
  { error: "the kubeconfig is no map" },
);

/** A kubeconfig whose shape is right. */
export type Kubeconfig = z.infer<typeof schema>;

/**
 * Reads a kubeconfig, and says of one that cannot be used what is wrong with it and where, which its reader does not.
 * @throws WatchfireError WF_KUBE_CONFIG
 */
export async function readKubeconfig(file: string): Promise<Kubeconfig> {
  const bytes = await readFile(file).catch((cause: NodeJS.ErrnoException) => {
    const known = { ENOENT: "there is no such file", EISDIR: "it is a folder, not a file" }[cause.code ?? ""];
    const what = known ?? `it cannot be read: ${systemReason(cause)}`;
    throw configFault({ what, place: { file }, cause });
  });
  const [document] = readDocuments(decodeUtf8(bytes, file, "WF_KUBE_CONFIG"), file);
  const [fault] = document?.faults ?? [];
  if (!document || fault) throw configFault(fault?.detail ?? { what: "the file declares nothing", place: { file } });
  const read = schema.safeParse(document.value);
  if (read.success) return read.data;
  throw shapeFault(read.error, document);
}

function shapeFault({ issues }: z.ZodError, document: ManifestDocument): WatchfireError {
  const [issue] = issues;
  const path = issue?.path ?? [];
  const what = wordsOf(issue);
  return configFault({ what, place: document.place(path), path: showPath(path) });
}

/** What zod says, without its opening. */
export const wordsOf = (issue: z.core.$ZodIssue | undefined): string =>
  (issue?.message ?? "").replace(/^Invalid input: /, "");

/** A kubeconfig's fault. */
export const configFault = (detail: WatchfireError["detail"]): WatchfireError =>
  new WatchfireError("WF_KUBE_CONFIG", detail);
