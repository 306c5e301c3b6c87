import { execFile } from "node:child_process";
import { delimiter, join } from "node:path";
import { connectKubeconfig } from "../../../runtime/kube/kubeconfig.ts";
import type { Case } from "./cases.ts";
import { folderOfCase, type Seen, type Site } from "./site.ts";

type Question = Pick<Case, "files" | "listed" | "context" | "environment">;

/** The result of a request for `/version`: the request that the server saw, or the reason why no request arrived. */
export type Asked =
  | { readonly seen: Seen; readonly refusal?: undefined }
  | { readonly refusal: unknown; readonly seen?: undefined };

export const outcomeOf = (asked: Asked): Seen | "refused" => asked.seen ?? "refused";

/** The information that a plugin of `informedCasesOf` received. */
export function printedInfo({ seen, refusal }: Asked): unknown {
  if (!seen) throw refusal;
  return JSON.parse(Buffer.from((seen.authorization ?? "").replace("Bearer ", ""), "base64").toString());
}

function prepared({ files, listed, environment }: Question) {
  const folder = folderOfCase(files);
  const extra = Object.entries(environment ?? {}).map(([name, value]) => [name, value.replace("FOLDER", folder)]);
  const paths = listed?.map((name) => (name === "" ? "" : join(folder, name)));
  return {
    file: paths ? undefined : join(folder, "config"),
    environment: {
      PATH: process.env.PATH,
      HOME: folder,
      ...(paths && paths.length > 0 && { KUBECONFIG: paths.join(delimiter) }),
      ...Object.fromEntries(extra),
    },
  };
}

/** Sends the request as the runtime, with its own reader of kubeconfigs. */
export async function askOurs(site: Site, question: Question): Promise<Asked> {
  const { file, environment } = prepared(question);
  site.take();
  try {
    const { transport } = await connectKubeconfig({ file, context: question.context, environment });
    await transport.json({ method: "GET", path: "/version" }).finally(() => transport.close());
  } catch (refusal) {
    return { refusal };
  }
  return { seen: last(site) };
}

export function askKubectl(kubectl: string, site: Site, question: Question): Promise<Asked> {
  const { file, environment } = prepared(question);
  const named = [...(file ? ["--kubeconfig", file] : []), ...(question.context ? ["--context", question.context] : [])];
  site.take();
  return new Promise((done) => {
    const options = { env: environment, cwd: "/", timeout: 15_000 };
    const child = execFile(kubectl, [...named, "get", "--raw", "/version"], options, (error, _stdout, stderr) =>
      done(error ? { refusal: new Error(stderr) } : { seen: last(site) }),
    );
    child.stdin?.end();
  });
}

function last(site: Site): Seen {
  const seen = site.take().at(-1);
  if (!seen) throw new Error("an answer that the server never gave");
  return seen;
}
