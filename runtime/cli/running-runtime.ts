import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean } from "../base/wording.ts";
import { reasonLimit } from "../control/access/reason.ts";
import { type StatusAnswer, statusAnswerSchema } from "../control/status-answer.ts";
import { readAddress } from "../observe/address-file.ts";
import { readToken } from "../observe/token-file.ts";
import { KubectlClient } from "./kubectl-client.ts";
import { data } from "./options.ts";
import { RuntimeClient } from "./runtime-client.ts";
import { type RuntimePod, runtimePods } from "./runtime-pods.ts";

/** The options that name a runtime in a cluster. */
export const clusterRuntimeOptions = {
  namespace: {
    value: "NS",
    short: "n",
    summary: "asks the runtime in this namespace of your cluster, through `kubectl port-forward`",
  },
  release: { value: "NAME", summary: "the same, for the runtime of this Helm release" },
  pod: { value: "NAME", summary: "this replica of it; default: one that works" },
  context: { value: "NAME", summary: "the kubeconfig's context" },
  kubeconfig: { value: "FILE", summary: "the kubeconfig; default: kubectl's" },
  "as-account": {
    value: "NAME",
    summary: "asks as this ServiceAccount, NAME or NAMESPACE/NAME, instead of as the kubeconfig's user",
  },
} as const;

/** The option of commands that change something. */
export const reasonOption = {
  reason: { value: "TEXT", summary: "why, for the runtime's audit log" },
} as const;

/** The options of a command that contacts a running runtime. */
export const runtimeOptions = {
  data: {
    value: "DIR",
    summary: "the data folder of the running runtime, which has its URL and its token",
    default: data.default,
  },
  url: { value: "URL", summary: "the URL of a runtime, such as http://127.0.0.1:9464" },
  ...clusterRuntimeOptions,
} as const;

interface RuntimeRequest {
  readonly options: { readonly data: string; readonly reason?: string | undefined } & {
    readonly [Name in "url" | keyof typeof clusterRuntimeOptions]: string | undefined;
  };
  readonly given: ReadonlySet<string>;
  readonly isPlugin?: boolean;
}

/** How a runtime is reached. */
interface RuntimeRoute {
  /** Whether its port is forwarded, which ends with the command. */
  readonly isForwarded: boolean;
}

/** How a command uses the runtime. */
interface RuntimeUse {
  /** False if it only reads /status, for which a runtime in a cluster needs no token. Default true. */
  readonly needsToken?: boolean;
}

/**
 * Calls `work` with the addressed runtime: one in a cluster if the options name it or kubectl started this program, otherwise
 * that of the data folder or URL.
 * @throws WatchfireError WF_CLI_UNREACHABLE if the data folder has no address, WF_CLI_FORWARD if the cluster's is not reached
 */
export async function withRuntime<T>(
  request: RuntimeRequest,
  work: (runtime: RuntimeClient, route: RuntimeRoute) => Promise<T>,
  use: RuntimeUse = {},
): Promise<T> {
  return isInCluster(request)
    ? throughKubectl(request, use, (runtime) => work(runtime, { isForwarded: true }))
    : work(localRuntime(request), { isForwarded: false });
}

/** Whether a runtime in a cluster is addressed. @throws WatchfireError WF_CLI_USAGE if both kinds are */
export function isInCluster({ given, isPlugin = false }: RuntimeRequest): boolean {
  const [local] = ["url", "data"].filter((name) => given.has(name));
  const [remote] = Object.keys(clusterRuntimeOptions).filter((name) => given.has(name));
  if (local !== undefined && remote !== undefined) {
    const what = `--${local} names a runtime on this machine, and --${remote} one in a cluster`;
    throw new WatchfireError("WF_CLI_USAGE", { what, hint: "leave out one of them" });
  }
  return remote !== undefined || (isPlugin && local === undefined);
}

function localRuntime({ options: { data: named, url, reason }, given }: RuntimeRequest): RuntimeClient {
  const folder = given.has("data") ? named : (readEnvironment().dataFolder ?? named);
  return new RuntimeClient(url ?? addressOf(folder), readToken(folder), readReason(reason));
}

/** Forwards a port of the first replica that works, and calls `work` with its address and token. */
async function throughKubectl<T>(
  { options }: RuntimeRequest,
  { needsToken = true }: RuntimeUse,
  work: (client: RuntimeClient) => Promise<T>,
): Promise<T> {
  const { variables } = readEnvironment();
  const reason = readReason(options.reason);
  const kubectl = new KubectlClient(variables, options);
  const pods = await runtimePods(kubectl, options);
  for (const [index, pod] of pods.entries()) {
    const isLast = index === pods.length - 1;
    const { url, close } = await kubectl.forward(pod);
    try {
      const found = isLast && !needsToken ? undefined : await statusAt(url);
      if (!isLast && (found === undefined || found.role === "standby")) continue;
      process.stderr.write(`${named(pod)}\n`);
      const reviews = found?.tokenReview ?? false;
      // Loads the client of the API server, which a runtime on this machine does not need.
      const { loginTo } = await import("./cluster-login.ts");
      const token = needsToken ? await loginTo(kubectl, pod, options, variables, reviews) : undefined;
      return await work(new RuntimeClient(url, token, reason));
    } finally {
      close();
    }
  }
  throw new TypeError("a runtime has a pod");
}

const named = ({ namespace, name }: RuntimePod): string => clean(`runtime: pod ${name} in namespace ${namespace}`);

/** Returns what a replica says of itself; `undefined` if it does not answer. It is passed over as one that stands by. */
async function statusAt(url: string): Promise<StatusAnswer | undefined> {
  try {
    return await new RuntimeClient(url, undefined).ask(statusAnswerSchema, "status");
  } catch (error) {
    if (error instanceof WatchfireError) return undefined;
    throw error;
  }
}

/** @throws WatchfireError WF_CLI_USAGE for a reason that is too long */
export function readReason(reason: string | undefined): string | undefined {
  if (reason === undefined || reason.length <= reasonLimit) return reason;
  throw new WatchfireError("WF_CLI_USAGE", {
    what: `--reason takes at most ${reasonLimit} characters`,
    actual: reason.length,
  });
}

function addressOf(folder: string): string {
  const url = readAddress(folder);
  if (url !== undefined) return url;
  throw new WatchfireError("WF_CLI_UNREACHABLE", {
    what: "no runtime was started with this data folder",
    actual: folder,
    hint: "start one, or name its data folder with --data, its address with --url, or its namespace in a cluster with -n",
  });
}

/** Returns the one function that a command is for. @throws WatchfireError WF_CLI_USAGE */
export function functionOperand(command: string, operands: readonly string[]): string {
  const [name, ...more] = operands;
  if (name !== undefined && name !== "" && more.length === 0) return name;
  throw new WatchfireError("WF_CLI_USAGE", {
    what: `${command} takes one FUNCTION`,
    actual: operands.join(" ") || undefined,
    hint: `such as \`watchfire ${command} greet\``,
  });
}

/** Returns the path of a function's endpoints. */
export const functionPath = (name: string, rest: string): string => `functions/${encodeURIComponent(name)}/${rest}`;

/** Writes to stderr where the function's other shards are, which the answer does not cover. */
export function reportElsewhere({ elsewhere }: { readonly elsewhere?: string | undefined }): void {
  if (elsewhere !== undefined) process.stderr.write(`this does not cover all shards: ${clean(elsewhere)}\n`);
}
