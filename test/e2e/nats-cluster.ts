import { until } from "../tools/until.ts";
import { images } from "./images.ts";
import { admin, ensureNamespace, killContainer, removeNamespace } from "./release.ts";

/** Address of the node. The cluster has no DNS, and pods on the node's network keep their address across restarts. */
const node = "10.96.0.1";
const namespace = "nats";
const pods = `/api/v1/namespaces/${namespace}/pods`;
const servers = [0, 1, 2] as const;
const clientPort = (server: number) => 4222 + server;
const routePort = (server: number) => 6222 + server;
const monitorPort = (server: number) => 8222 + server;

/** Three nats-servers in pods that form a cluster with JetStream. */
export class NatsCluster {
  /** The servers' addresses, in the form that `--set nats.url` takes. */
  readonly url = servers.map((server) => `nats://${node}:${clientPort(server)}`).join("\\,");

  static async start(): Promise<NatsCluster> {
    await ensureNamespace(namespace);
    for (const server of servers) await admin.post(pods, podOf(server));
    const cluster = new NatsCluster();
    await cluster.isWhole();
    return cluster;
  }

  /** Resolves when all three serve JetStream and one of them is the leader. */
  async isWhole(): Promise<void> {
    for (const server of servers) {
      await until(`the nats-server ${server} serves JetStream`, 60_000, async () => (await healthOf(server)) === 200);
    }
  }

  /** Sends SIGKILL to one server; the kubelet restarts it on the same files. */
  async kill(server: (typeof servers)[number]): Promise<void> {
    killContainer(await admin.get(`${pods}/nats-${server}`), "nats");
  }

  remove(): Promise<void> {
    return removeNamespace(namespace);
  }
}

async function healthOf(server: number): Promise<number> {
  const url = `http://${node}:${monitorPort(server)}/healthz`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
  await answer?.text();
  return answer?.status ?? 0;
}

function podOf(server: number): object {
  const { repository, tag } = images.nats;
  const routes = servers.map((each) => `nats://${node}:${routePort(each)}`).join(",");
  const flags = {
    "--addr": node,
    "--port": clientPort(server),
    "--http_port": monitorPort(server),
    "--name": `nats-${server}`,
    "--store_dir": "/data",
    "--cluster_name": "e2e",
    "--cluster": `nats://${node}:${routePort(server)}`,
    "--routes": routes,
  };
  return {
    metadata: { name: `nats-${server}`, namespace },
    spec: {
      hostNetwork: true,
      // No reason to wait: the files are deleted with the pod.
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: "nats",
          image: `${repository}:${tag}`,
          imagePullPolicy: "Never",
          args: ["--jetstream", ...Object.entries(flags).flatMap(([flag, value]) => [flag, String(value)])],
          volumeMounts: [{ name: "data", mountPath: "/data" }],
        },
      ],
      volumes: [{ name: "data", emptyDir: {} }],
    },
  };
}
