import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCluster } from "@watchfire/cluster";
import type { OwnTarget } from "./target.ts";

/** Starts the embedded cluster with its state in a file, so that it can be started again on it. */
export async function start(): Promise<OwnTarget> {
  const folder = await mkdtemp(join(tmpdir(), "watchfire-cluster-"));
  const stateFile = join(folder, "state");
  let cluster = await startCluster({ state: stateFile });
  const restart = async (meanwhile = async () => {}) => {
    const port = Number(new URL(cluster.url).port);
    await cluster.close();
    await meanwhile();
    cluster = await startCluster({ port, state: stateFile });
  };
  return {
    controllers: true,
    get access() {
      return { url: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken };
    },
    async compact() {
      await cluster.compact();
    },
    restart: () => restart(),
    async backUp() {
      await copyFile(stateFile, `${stateFile}.copy`);
    },
    rewind: () => restart(() => copyFile(`${stateFile}.copy`, stateFile)),
    async close() {
      await cluster.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
