import { connect } from "node:net";
import { readKubeconfig } from "../kube/kubeconfig-file.ts";

/**
 * Time limit of a connection, in milliseconds. The embedded cluster is on loopback: it answers within a millisecond, or is not
 * running.
 */
const connectMs = 1_000;

/**
 * Returns the `host:port` of a kubeconfig's server if nothing listens there; `undefined` if something does, or if the file does
 * not say.
 */
export async function silentServer(kubeconfig: string): Promise<string | undefined> {
  const read = await readKubeconfig(kubeconfig).catch(() => undefined);
  const [cluster] = read?.clusters.values() ?? [];
  if (!cluster || !URL.canParse(cluster.server)) return undefined;
  const { host, hostname, port } = new URL(cluster.server);
  return (await isRefused(hostname, Number(port))) ? host : undefined;
}

function isRefused(host: string, port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host, port, timeout: connectMs });
    const end = (refused: boolean) => {
      socket.destroy();
      done(refused);
    };
    socket.on("connect", () => end(false));
    socket.on("timeout", () => end(false));
    socket.on("error", (error: NodeJS.ErrnoException) => end(error.code === "ECONNREFUSED"));
  });
}
