import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCluster } from "@watchfire/cluster";
import { revisionBump } from "./recipe.ts";
import type { OwnTarget } from "./target.ts";

/** Starts the embedded cluster with its state in a file, so that it can be restarted on it. */
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
    rewind: (recipe) =>
      restart(async () => {
        await copyFile(`${stateFile}.copy`, stateFile);
        if (recipe === "bump") await bump(stateFile);
      }),
    async close() {
      await cluster.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Makes the cluster continue at a revision far beyond that of its state, as `etcdutl snapshot restore --bump-revision` does.
 */
async function bump(stateFile: string): Promise<void> {
  const [header = "", ...records] = (await readFile(stateFile, "utf8")).split("\n");
  const state = JSON.parse(header);
  const revisions = records.flatMap((line) => (line ? [JSON.parse(line).revision] : []));
  state.revision = Math.max(state.revision, ...revisions) + revisionBump;
  await writeFile(stateFile, [JSON.stringify(state), ...records].join("\n"));
}
