// The embedded cluster that a file's scenarios share; each has a namespace of its own.
import { randomBytes } from "node:crypto";
import { afterAll, onTestFinished } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { type Cluster, startCluster } from "../../runtime/dev/cluster/cluster.ts";
import { Client } from "../cluster/client.ts";
import { Installation } from "../tools/installation.ts";

export const cluster: Cluster = await startCluster({ clock: systemClock });

const connection = { server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken };

/** The cluster's administrator. */
export const admin = new Client({ url: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });

afterAll(async () => {
  await admin.close();
  await cluster.close();
});

/** A runtime that ends with the test; with the administrator's token unless another is given. */
export async function install(token: string = connection.token): Promise<Installation> {
  const made = await Installation.on({ ...connection, token });
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

/** A namespace with ConfigMaps whose one value is `v`. */
export class Team {
  readonly name = `team-${randomBytes(4).toString("hex")}`;
  readonly path = `/api/v1/namespaces/${this.name}/configmaps`;

  static async create(labels: Record<string, string> = {}): Promise<Team> {
    const team = new Team();
    await admin.post("/api/v1/namespaces", { metadata: { name: team.name, labels } });
    return team;
  }

  /** A trigger's \`watch\` of these ConfigMaps, without the one that each namespace has. */
  watch(more: object = {}): object {
    return {
      apiVersion: "v1",
      kind: "ConfigMap",
      namespaceSelector: { matchNames: [this.name] },
      fieldSelector: "metadata.name!=kube-root-ca.crt",
      ...more,
    };
  }

  async make(name: string, v: string | number = 1, labels: Record<string, string> = {}): Promise<void> {
    await admin.post(this.path, { metadata: { name, labels }, data: { v: String(v) } });
  }

  async set(name: string, v: string | number): Promise<void> {
    await admin.patch(`${this.path}/${name}`, { data: { v: String(v) } });
  }

  /** Null takes a label away. */
  async label(name: string, labels: Record<string, string | null>): Promise<void> {
    await admin.patch(`${this.path}/${name}`, { metadata: { labels } });
  }

  async remove(name: string): Promise<void> {
    await admin.delete(`${this.path}/${name}`);
  }
}
