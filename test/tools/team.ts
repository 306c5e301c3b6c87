import { randomBytes } from "node:crypto";
import type { Client } from "../target/client.ts";

/** A namespace with ConfigMaps whose only value is `v`. */
export class Team {
  readonly name = `team-${randomBytes(4).toString("hex")}`;
  readonly path = `/api/v1/namespaces/${this.name}/configmaps`;

  private readonly admin: Client;

  private constructor(admin: Client) {
    this.admin = admin;
  }

  static async create(admin: Client, labels: Record<string, string> = {}): Promise<Team> {
    const team = new Team(admin);
    await admin.post("/api/v1/namespaces", { metadata: { name: team.name, labels } });
    return team;
  }

  /** A trigger's `watch` of these ConfigMaps, without the one that each namespace contains. */
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
    await this.admin.post(this.path, { metadata: { name, labels }, data: { v: String(v) } });
  }

  async set(name: string, v: string | number): Promise<void> {
    await this.admin.patch(`${this.path}/${name}`, { data: { v: String(v) } });
  }

  /** Sets labels; null removes a label. */
  async label(name: string, labels: Record<string, string | null>): Promise<void> {
    await this.admin.patch(`${this.path}/${name}`, { metadata: { labels } });
  }

  async remove(name: string): Promise<void> {
    await this.admin.delete(`${this.path}/${name}`);
  }
}
