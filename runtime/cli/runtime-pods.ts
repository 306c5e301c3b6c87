import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { forwardFault, type KubectlClient } from "./kubectl-client.ts";

/** Names of the chart: the label of a release, the label of every object, the runtime's container, and its port. */
const releaseLabel = "app.kubernetes.io/instance";
const nameLabel = "app.kubernetes.io/name=watchfire";
const container = "watchfire";
const portName = "http";

/** Selects a runtime of a cluster. Without a field: any. */
interface RuntimeSelector {
  readonly namespace?: string | undefined;
  /** The name of the Helm release. */
  readonly release?: string | undefined;
  readonly pod?: string | undefined;
}

/** A pod that runs a runtime. */
export interface RuntimePod {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  /** Name of its ServiceAccount. */
  readonly account: string;
}

const podsSchema = z.object({
  items: z.array(
    z.object({
      metadata: z.object({
        namespace: z.string(),
        name: z.string(),
        labels: z.record(z.string(), z.string()).default({}),
        deletionTimestamp: z.string().optional(),
      }),
      spec: z.object({
        serviceAccountName: z.string().default("default"),
        containers: z.array(
          z.object({
            name: z.string(),
            ports: z.array(z.object({ name: z.string().optional(), containerPort: z.int() })).default([]),
          }),
        ),
      }),
      status: z
        .object({
          phase: z.string().optional(),
          conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
        })
        .prefault({}),
    }),
  ),
});
type Pod = z.output<typeof podsSchema>["items"][number];

/**
 * Returns the pods of the one runtime that is selected, ready ones first. At least one.
 * @throws WatchfireError WF_CLI_USAGE if several runtimes are selected, WF_CLI_FORWARD if no pod of a runtime runs
 */
export async function runtimePods(kubectl: KubectlClient, of: RuntimeSelector): Promise<readonly RuntimePod[]> {
  const pods = (await listed(kubectl, of)).flatMap((pod) => {
    const port = portOf(pod);
    return port === undefined || (of.pod !== undefined && pod.metadata.name !== of.pod) ? [] : { pod, port };
  });
  const runtimes = new Map(
    pods.map(({ pod: { metadata } }) => [`${metadata.namespace}/${releaseOf(metadata)}`, metadata]),
  );
  if (runtimes.size > 1) {
    const names = [...runtimes.values()].map((each) => `-n ${each.namespace} --release ${releaseOf(each)}`);
    throw new WatchfireError("WF_CLI_USAGE", {
      what: "the cluster has several runtimes",
      hint: `name one: ${names.toSorted().join(", ")}`,
    });
  }
  const running = pods.filter(({ pod }) => pod.status.phase === "Running" && !pod.metadata.deletionTimestamp);
  if (running.length === 0)
    throw missing(
      of,
      pods.map(({ pod }) => `${pod.metadata.name} is ${pod.status.phase}`),
    );
  return running
    .toSorted((one, other) => Number(isReady(other.pod)) - Number(isReady(one.pod)) || compareNames(one.pod, other.pod))
    .map(({ pod: { metadata, spec }, port }) => {
      return { namespace: metadata.namespace, name: metadata.name, port, account: spec.serviceAccountName };
    });
}

/** Without a namespace it looks in all, or in the context's if the user may not. */
async function listed(kubectl: KubectlClient, { namespace, release }: RuntimeSelector): Promise<readonly Pod[]> {
  if (release !== undefined && !/^[\w.-]{1,63}$/.test(release)) {
    throw new WatchfireError("WF_CLI_USAGE", { what: "--release takes the name of a Helm release", actual: release });
  }
  const selector = `--selector=${release === undefined ? nameLabel : `${releaseLabel}=${release}`}`;
  const read = async (...where: readonly string[]) =>
    podsSchema.parse(JSON.parse(await kubectl.ask("get", "pods", ...where, selector, "--output=json"))).items;
  if (namespace !== undefined) return read(`--namespace=${namespace}`);
  try {
    return await read("--all-namespaces");
  } catch (error) {
    if (error instanceof WatchfireError && /forbidden/i.test(error.message)) return read();
    throw error;
  }
}

const portOf = ({ spec: { containers } }: Pod): number | undefined =>
  containers.find(({ name }) => name === container)?.ports.find(({ name }) => name === portName)?.containerPort;

const releaseOf = ({ labels }: Pod["metadata"]): string => labels[releaseLabel] ?? "";

const isReady = ({ status: { conditions } }: Pod): boolean =>
  conditions.some(({ type, status }) => type === "Ready" && status === "True");

const compareNames = (one: Pod, other: Pod): number => (one.metadata.name < other.metadata.name ? -1 : 1);

function missing({ namespace, release, pod }: RuntimeSelector, others: readonly string[]): WatchfireError {
  const named = [namespace && `-n ${namespace}`, release && `--release ${release}`, pod && `--pod ${pod}`];
  return forwardFault(
    others.length > 0 ? `no pod of the runtime runs: ${others.join(", ")}` : "the cluster has no pod of a runtime",
    {
      actual: named.filter(Boolean).join(" ") || undefined,
      hint: "name its namespace with -n and its Helm release with --release; `helm list -A` has both",
    },
  );
}

/** Reads the token of the pod's data folder, which all endpoints but /status require. @throws WatchfireError WF_CLI_FORWARD */
export async function tokenOf(kubectl: KubectlClient, { namespace, name }: RuntimePod): Promise<string> {
  const program = `const { env, stdout } = process; stdout.write(require("fs").readFileSync(env.WATCHFIRE_DATA + "/token", "utf8"))`;
  const where = [`--namespace=${namespace}`, name, `--container=${container}`];
  return (await kubectl.ask("exec", ...where, "--", "node", "-e", program)).trim();
}
