import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Status } from "../../runtime/host/status.ts";
import { helm } from "../chart/helm.ts";
import { type Body, Client } from "../target/client.ts";
import { accessOf } from "../target/kubeconfig.ts";
import { until } from "../tools/until.ts";
import { images } from "./images.ts";

/** The folder of the tool that runs the cluster; see run.ts. */
const folder = process.env.WATCHFIRE_CLUSTER_FOLDER ?? "";
export const kubeconfig = join(folder, "kubeconfig");
export const auditLog = join(folder, "audit.log");
export const admin = new Client(await accessOf(kubeconfig));

const root = join(import.meta.dirname, "../..");
const chart = join(root, "deploy/chart");
const port = 9464;

/** Runs a command and returns its output. If it fails, throws with its error output. */
async function run(command: string, args: readonly string[], input = ""): Promise<string> {
  const child = promisify(execFile)(command, args, { maxBuffer: 2 ** 26 });
  child.child.stdin?.end(input);
  return (await child).stdout;
}

export const kubectl = (args: readonly string[], input?: string): Promise<string> => run("kubectl", args, input);

/** Runs this checkout's `watchfire`. */
export const watchfire = (...args: readonly string[]): Promise<string> =>
  run(process.execPath, [join(root, "runtime/bin/watchfire.js"), ...args]);

/** Creates a namespace, unless it exists. */
export async function ensureNamespace(name: string, labels: Record<string, string> = {}): Promise<void> {
  const { status, text } = await admin.reply("POST", "/api/v1/namespaces", { body: { metadata: { name, labels } } });
  if (status !== 201 && status !== 409) throw new Error(text);
}

/**
 * Limit of the removal of a namespace with 60,000 objects, in milliseconds; a busy machine takes more than a minute.
 */
const removalMs = 300_000;

/** Removes a namespace and its content. Resolves when it is gone. */
export async function removeNamespace(name: string): Promise<void> {
  const path = `/api/v1/namespaces/${name}`;
  await admin.reply("DELETE", path);
  await until(`the namespace ${name} is gone`, removalMs, async () => (await admin.reply("GET", path)).status === 404);
}

/** A release of the chart named `watchfire`, in its own namespace with the restricted pod security standard. */
export class Release {
  readonly namespace: string;

  private constructor(namespace: string) {
    this.namespace = namespace;
  }

  static async into(namespace: string): Promise<Release> {
    await ensureNamespace(namespace, { "pod-security.kubernetes.io/enforce": "restricted" });
    return new Release(namespace);
  }

  /** Grants the output of `watchfire rbac` for a folder of functions. */
  async grant(functions: string, ...flags: readonly string[]): Promise<void> {
    const printed = await watchfire(
      "rbac",
      "--functions",
      functions,
      "--namespace",
      this.namespace,
      "--leader-elect",
      "--deployed",
      "--token-review",
      ...flags,
    );
    await kubectl(["apply", "-f", "-"], printed);
  }

  /** `helm install` or `helm upgrade`; resolves when the pods are ready. */
  async helm(verb: "install" | "upgrade", image: keyof typeof images, ...sets: readonly string[]): Promise<string> {
    const { repository, tag } = images[image];
    const all = [`image.repository=${repository}`, `image.tag=${tag}`, "image.pullPolicy=Never", ...sets];
    // The release takes over the runtime's account, which `watchfire rbac` created before.
    const where = ["--namespace", this.namespace, "--kubeconfig", kubeconfig, "--take-ownership"];
    return helm(
      verb,
      "watchfire",
      chart,
      ...where,
      "--wait",
      "--timeout",
      "150s",
      ...all.flatMap((set) => ["--set", set]),
    );
  }

  /** `helm uninstall`; resolves when the pods are gone. */
  async uninstall(): Promise<void> {
    await helm("uninstall", "watchfire", "--namespace", this.namespace, "--kubeconfig", kubeconfig, "--wait");
    await until("the pods are gone", 90_000, async () => (await admin.get(`${this.path}/pods`)).items.length === 0);
  }

  get path(): string {
    return `/api/v1/namespaces/${this.namespace}`;
  }

  /** Deploys the folder's functions by `watchfire deploy`. */
  deploy(functions: string): Promise<string> {
    return watchfire("deploy", "--functions", functions, "--namespace", this.namespace, "--kubeconfig", kubeconfig);
  }

  /** Pods that run and are not being deleted. */
  async pods(): Promise<Body[]> {
    const { items } = await admin.get(`${this.path}/pods`, { labelSelector: "app.kubernetes.io/name=watchfire" });
    return items.filter(({ metadata, status }) => !metadata.deletionTimestamp && status.phase === "Running");
  }

  pod(ordinal = 0) {
    return admin.get(`${this.path}/pods/watchfire-${ordinal}`);
  }

  /** The kubelet's status of a pod's container. */
  async container(name: "watchfire" | "executor", ordinal = 0) {
    const { status } = await this.pod(ordinal);
    return status.containerStatuses.find((each: { name: string }) => each.name === name);
  }

  async status(ordinal = 0): Promise<Status> {
    return statusOf(await this.pod(ordinal));
  }

  /** The ordinal of the pod that reports that it is active. */
  active(ordinals: readonly number[]): Promise<number> {
    return until("one of the pods is active", 60_000, async () => {
      for (const ordinal of ordinals) {
        const status = await this.status(ordinal).catch(() => undefined);
        if (status?.role === "active") return { ordinal };
      }
      return undefined;
    }).then(({ ordinal }) => ordinal);
  }

  exec(...command: readonly string[]): Promise<string> {
    return kubectl(["-n", this.namespace, "exec", "watchfire-0", "-c", "watchfire", "--", ...command]);
  }

  logs(container: "watchfire" | "executor", ordinal = 0): Promise<string> {
    return kubectl(["-n", this.namespace, "logs", `watchfire-${ordinal}`, "-c", container]);
  }

  /** Deletes a pod like a lost node: without a grace period, and without waiting for the process to end. */
  async deletePodAtOnce(ordinal = 0): Promise<void> {
    await kubectl([
      "-n",
      this.namespace,
      "delete",
      "pod",
      `watchfire-${ordinal}`,
      "--grace-period=0",
      "--force",
      "--wait=false",
    ]);
  }

  /** Sends SIGKILL to a container's first process, from the node. */
  async kill(container: "watchfire" | "executor", ordinal = 0): Promise<void> {
    killContainer(await this.pod(ordinal), container);
  }
}

/** Sends SIGKILL to the first process of a pod's container, from the node. */
export function killContainer({ status }: Body, container: string): void {
  const { containerID } = status.containerStatuses.find(({ name }: { name: string }) => name === container);
  process.kill(firstProcess(containerID.replace("containerd://", "")), "SIGKILL");
}

/** The status that a pod reports. */
export const statusOf = async (pod: Body): Promise<Status> => (await ask(pod, "status")).json() as Promise<Status>;

/** The text of a pod's `/metrics`. */
export const metricsOf = async (pod: Body): Promise<string> => (await ask(pod, "metrics")).text();

const ask = ({ status }: Body, path: string): Promise<Response> =>
  fetch(`http://${status.podIP}:${port}/${path}`, { signal: AbortSignal.timeout(5_000) });

/** The machine's pid of the process that is number 1 in a container. */
function firstProcess(containerId: string): number {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(containerId)) continue;
      if (/^NSpid:.*\s1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))) return Number(pid);
    } catch {
      // It has just ended.
    }
  }
  throw new Error(`no process of container ${containerId}`);
}
