import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { RealCluster } from "../../runtime/dev/real/real-cluster.ts";
import { findRealPrograms } from "../../runtime/dev/real/real-programs.ts";
import { asset, assetsFolder, etcdutl } from "../tools/assets.ts";
import { type Recipe, recipesOf, revisionBump } from "./recipe.ts";
import type { OwnTarget } from "./target.ts";

/** Audit policy: logs the user, the request and the response code, only for ServiceAccounts. */
const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata", userGroups: ["system:serviceaccounts"] }, { level: "None" }],
};

/** Also the way of the backup: by a snapshot, or by a copy of the files. */
const [firstRecipe] = recipesOf("real");

/**
 * Starts etcd, kube-apiserver and, where the folder has one, kube-controller-manager from `KUBEBUILDER_ASSETS`.
 * @param gates features of the API server that are off by default
 */
export async function start(gates: readonly string[]): Promise<OwnTarget> {
  const folder = await mkdtemp(join(tmpdir(), "watchfire-cluster-"));
  const file = (name: string) => join(folder, name);
  await writeFile(file("audit.json"), JSON.stringify(auditPolicy));
  const programs = findRealPrograms({ KUBEBUILDER_ASSETS: assetsFolder() });
  const auditLog = file("audit.log");
  const audit = [`--audit-policy-file=${file("audit.json")}`, `--audit-log-path=${auditLog}`];
  const apiserverArgs = [...audit, ...gates.map((gate) => `--feature-gates=${gate}=true`)];
  const cluster = await RealCluster.start({ programs, folder, apiserverArgs }).catch(async (error) => {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    throw error;
  });
  return new RealTarget({ cluster, folder, auditLog, controllers: programs.manager !== undefined });
}

interface RealTargetParts {
  readonly cluster: RealCluster;
  readonly folder: string;
  readonly auditLog: string;
  readonly controllers: boolean;
}

class RealTarget implements OwnTarget {
  readonly controllers: boolean;
  readonly auditLog: string;
  private readonly cluster: RealCluster;
  private readonly folder: string;

  constructor({ cluster, folder, auditLog, controllers }: RealTargetParts) {
    this.cluster = cluster;
    this.folder = folder;
    this.auditLog = auditLog;
    this.controllers = controllers;
  }

  get access() {
    const { url, ca, token } = this.cluster;
    return { url, ca, token };
  }

  async compact(): Promise<void> {
    const status = JSON.parse(await this.etcdctl("endpoint", "status", "-w", "json"));
    await this.etcdctl("compact", "--physical", String(status[0].Status.header.revision));
    // After the compaction of etcd, the API server's watch cache and list snapshots would still answer, so it is restarted with
    // empty ones.
    await this.restart();
  }

  async restart(): Promise<void> {
    await this.cluster.apiserver?.kill();
    await this.cluster.startApiserver();
  }

  /**
   * Backs up etcd. If snapshots are not available, etcd is stopped meanwhile, because a database in use cannot be copied. The API
   * server waits.
   */
  async backUp(): Promise<void> {
    if (firstRecipe !== "copy") {
      await rm(this.file("snapshot"), { force: true });
      await this.etcdctl("snapshot", "save", this.file("snapshot"));
      return;
    }
    await this.cluster.etcd?.kill();
    await cp(this.file("etcd"), this.file("copy"), { recursive: true });
    this.cluster.startEtcd();
    await this.cluster.untilReady();
  }

  async rewind(recipe: Recipe = firstRecipe): Promise<void> {
    await Promise.all([this.cluster.apiserver?.kill(), this.cluster.etcd?.kill()]);
    await rm(this.file("etcd"), { recursive: true });
    if (recipe === "copy") await cp(this.file("copy"), this.file("etcd"), { recursive: true });
    else await this.restore(recipe === "bump" ? [`--bump-revision=${revisionBump}`, "--mark-compacted"] : []);
    this.cluster.startEtcd();
    await this.cluster.startApiserver();
  }

  async close(): Promise<void> {
    await this.cluster.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  private async restore(options: readonly string[]): Promise<void> {
    if (!etcdutl) throw new Error("neither ETCDUTL nor KUBEBUILDER_ASSETS names an etcdutl");
    const args = ["snapshot", "restore", this.file("snapshot"), `--data-dir=${this.file("etcd")}`];
    await promisify(execFile)(etcdutl, [...args, ...options]);
  }

  private async etcdctl(...args: string[]): Promise<string> {
    const path = asset("etcdctl");
    if (!path) throw new Error("KUBEBUILDER_ASSETS holds no etcdctl");
    return (await promisify(execFile)(path, [`--endpoints=${this.cluster.etcdUrl}`, ...args])).stdout;
  }

  private file(name: string): string {
    return join(this.folder, name);
  }
}
