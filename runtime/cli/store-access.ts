import { systemClock } from "../base/clock.ts";
import { type Environment, readEnvironment } from "../base/config.ts";
import { recogniseCluster } from "../host/recognise-cluster.ts";
import type { StoreKind } from "../journal/checkpoint.ts";
import { createLog } from "../observe/log.ts";
import { candidate } from "./candidate.ts";
import type { Option, Values } from "./command.ts";
import { natsOptions, readNats } from "./nats-options.ts";
import { readAccount, readNamespace } from "./operand.ts";
import { data, kubeconfig, serviceAccount } from "./options.ts";

/** The options of a command that reads or replaces the checkpoints where they are stored. */
export const storeOptions = {
  store: {
    value: "WHERE",
    summary: "the runtime's store. `sqlite`: its data folder; `kubernetes`: its Secrets; `nats`: NATS JetStream",
    default: "sqlite",
  },
  data,
  kubeconfig,
  context: { value: "NAME", summary: "the kubeconfig's context" },
  namespace: { value: "NS", summary: "the runtime's namespace; without it, the pod's, then the context's" },
  "service-account": serviceAccount,
  ...natsOptions,
} as const satisfies Record<string, Option>;

/** Returns the data folder of the command line, or of the pod. */
export const dataFolderOf = (
  { options, given }: { readonly options: { readonly data: string }; readonly given: ReadonlySet<string> },
  { dataFolder }: Environment,
): string => (given.has("data") ? options.data : (dataFolder ?? options.data));

/** Connects to the cluster whose runtime has its checkpoints in Secrets or on NATS, and calls `work`. */
export async function withCluster<T>(
  options: Values<typeof storeOptions>,
  store: StoreKind,
  signal: AbortSignal,
  work: (access: Awaited<ReturnType<typeof accessTo>>) => Promise<T>,
): Promise<T> {
  const access = await accessTo(options, store, signal);
  try {
    return await work(access);
  } finally {
    await access.transport.close();
  }
}

async function accessTo(options: Values<typeof storeOptions>, store: StoreKind, signal: AbortSignal) {
  const environment = readEnvironment();
  const nats = readNats(options, store);
  const account = readAccount(options["service-account"]);
  const named = options.namespace === undefined ? undefined : readNamespace(options.namespace);
  const { connectKubeconfig } = await import("../kube/kubeconfig.ts");
  // The answer is on stdout.
  const log = createLog(environment.logLevel === "info" ? "warn" : environment.logLevel, process.stderr);
  const access = { file: options.kubeconfig, context: options.context, environment: environment.variables };
  const { transport, defaultNamespace } = await connectKubeconfig(access);
  const parts = { transport, clock: systemClock, random: Math.random, log };
  const namespace = named ?? environment.podNamespace ?? defaultNamespace;
  return {
    ...parts,
    nats,
    account,
    namespace,
    identity: candidate(environment).identity,
    /** The cluster's uid, if it may be read. Only what writes checkpoints needs it. */
    recognise: () => recogniseCluster({ ...parts, interactive: true }, signal, () => undefined),
  };
}
