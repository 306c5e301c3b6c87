import { execFile } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { asset, etcdutl } from "../tools/assets.ts";
import { Client } from "./client.ts";
import { kubeconfigOf } from "./kubeconfig.ts";
import { LeashedProcess } from "./leashed-process.ts";
import { type Recipe, recipesOf, revisionBump } from "./recipe.ts";
import type { OwnTarget } from "./target.ts";

/** The controllers of the controller-manager that the suite relies on. They need no node. */
const controllers = [
  "namespace-controller",
  "garbage-collector-controller",
  "serviceaccount-controller",
  "root-ca-certificate-publisher-controller",
];

/** Audit policy: logs the user, the request and the response code, only for ServiceAccounts. */
const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata", userGroups: ["system:serviceaccounts"] }, { level: "None" }],
};

/**
 * Heap growth in per cent after which Go's garbage collector runs. With the default of 100 a start takes a third more CPU time.
 */
const gcPercent = "300";

/** Also the way of the backup: by a snapshot, or by a copy of the files. */
const [firstRecipe] = recipesOf("real");

/** Limit of the start in milliseconds. It takes about 6 s on two idle cores. */
const startLimitMs = 90_000;

/**
 * Starts etcd, kube-apiserver and, where the folder has one, kube-controller-manager from `KUBEBUILDER_ASSETS`.
 * @param gates features of the API server that are off by default
 */
export async function start(gates: readonly string[]): Promise<OwnTarget> {
  const target = new RealTarget(await mkdtemp(join(tmpdir(), "watchfire-cluster-")), gates);
  try {
    await target.start();
    return target;
  } catch (error) {
    await target.close();
    throw error;
  }
}

class RealTarget implements OwnTarget {
  readonly controllers = asset("kube-controller-manager") !== undefined;
  private readonly folder: string;
  private readonly gates: readonly string[];
  private readonly token = randomBytes(16).toString("hex");
  private ca = "";
  private port = 0;
  private etcdUrl = "";
  private etcdPeerUrl = "";
  private etcd: LeashedProcess | undefined;
  private apiserver: LeashedProcess | undefined;
  private manager: LeashedProcess | undefined;

  constructor(folder: string, gates: readonly string[]) {
    this.folder = folder;
    this.gates = gates;
  }

  get access() {
    return { url: `https://127.0.0.1:${this.port}`, ca: this.ca, token: this.token };
  }

  get auditLog(): string {
    return this.file("audit.log");
  }

  async start(): Promise<void> {
    const keys = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
    await writeFile(this.file("sa.pub"), keys.publicKey);
    await writeFile(this.file("sa.key"), keys.privateKey, { mode: 0o600 });
    await writeFile(this.file("audit.json"), JSON.stringify(auditPolicy));
    await writeFile(this.file("tokens.csv"), `${this.token},admin,admin,system:masters\n`, { mode: 0o600 });

    const [client, peer, secure] = await freePorts(3);
    this.etcdUrl = `http://127.0.0.1:${client}`;
    this.etcdPeerUrl = `http://127.0.0.1:${peer}`;
    this.port = secure;
    this.startEtcd();
    await this.startApiserver();
    if (!this.controllers) return;
    await writeFile(this.file("manager.kubeconfig"), kubeconfigOf(this.access), { mode: 0o600 });
    this.manager = this.run("kube-controller-manager", [
      `--kubeconfig=${this.file("manager.kubeconfig")}`,
      `--controllers=${controllers.join(",")}`,
      `--root-ca-file=${this.file("certs/apiserver.crt")}`,
      "--leader-elect=false",
      "--secure-port=0",
      "--kube-api-qps=200",
      "--kube-api-burst=400",
    ]);
  }

  async compact(): Promise<void> {
    const status = JSON.parse(await this.etcdctl("endpoint", "status", "-w", "json"));
    await this.etcdctl("compact", "--physical", String(status[0].Status.header.revision));
    // After the compaction of etcd, the API server's watch cache and list snapshots would still answer, so it is restarted with
    // empty ones.
    await this.restart();
  }

  async restart(): Promise<void> {
    await this.apiserver?.kill();
    await this.startApiserver();
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
    await this.etcd?.kill();
    await cp(this.file("etcd"), this.file("copy"), { recursive: true });
    this.startEtcd();
    if (this.apiserver) await this.ready(this.apiserver);
  }

  async rewind(recipe: Recipe = firstRecipe): Promise<void> {
    await Promise.all([this.apiserver?.kill(), this.etcd?.kill()]);
    await rm(this.file("etcd"), { recursive: true });
    if (recipe === "copy") await cp(this.file("copy"), this.file("etcd"), { recursive: true });
    else await this.restore(recipe === "bump" ? [`--bump-revision=${revisionBump}`, "--mark-compacted"] : []);
    this.startEtcd();
    await this.startApiserver();
  }

  async close(): Promise<void> {
    await Promise.all([this.manager?.kill(), this.apiserver?.kill(), this.etcd?.kill()]);
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
    return (await promisify(execFile)(path, [`--endpoints=${this.etcdUrl}`, ...args])).stdout;
  }

  private startEtcd(): void {
    this.etcd = this.run("etcd", [
      `--data-dir=${this.file("etcd")}`,
      `--listen-client-urls=${this.etcdUrl}`,
      `--advertise-client-urls=${this.etcdUrl}`,
      `--listen-peer-urls=${this.etcdPeerUrl}`,
      "--unsafe-no-fsync",
      "--log-level=error",
    ]);
  }

  private async startApiserver(): Promise<void> {
    this.apiserver = this.run("kube-apiserver", [
      `--etcd-servers=${this.etcdUrl}`,
      "--bind-address=127.0.0.1",
      "--advertise-address=127.0.0.1",
      "--endpoint-reconciler-type=none",
      `--secure-port=${this.port}`,
      `--cert-dir=${this.file("certs")}`,
      `--token-auth-file=${this.file("tokens.csv")}`,
      `--service-account-key-file=${this.file("sa.pub")}`,
      `--service-account-signing-key-file=${this.file("sa.key")}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      "--service-cluster-ip-range=10.0.0.0/24",
      "--authorization-mode=RBAC",
      `--audit-policy-file=${this.file("audit.json")}`,
      `--audit-log-path=${this.auditLog}`,
      ...this.gates.map((gate) => `--feature-gates=${gate}=true`),
    ]);
    await this.ready(this.apiserver);
  }

  /** Waits until the API server reports that it is ready and the default namespace exists. */
  private async ready(process: LeashedProcess): Promise<void> {
    const deadline = AbortSignal.timeout(startLimitMs);
    while (!deadline.aborted) {
      if (process.exitStatus !== null) break;
      if (await this.answers()) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const log = await readFile(this.file(`${process.name}.log`), "utf8").catch(() => "");
    throw new Error(`${process.name} did not become ready; the end of its log:\n${log.slice(-2000)}`);
  }

  private async answers(): Promise<boolean> {
    this.ca = await readFile(this.file("certs/apiserver.crt"), "utf8").catch(() => "");
    if (!this.ca) return false;
    const client = new Client(this.access);
    try {
      if ((await client.reply("GET", "/readyz")).status !== 200) return false;
      return (await client.reply("GET", "/api/v1/namespaces/default")).status === 200;
    } catch {
      return false;
    } finally {
      await client.close();
    }
  }

  private run(name: string, args: string[]): LeashedProcess {
    const path = asset(name);
    if (!path) throw new Error(`KUBEBUILDER_ASSETS holds no ${name}`);
    return new LeashedProcess(path, args, this.file(`${name}.log`), { GOGC: gcPercent });
  }

  private file(name: string): string {
    return join(this.folder, name);
  }
}

/** Different loopback ports that were free a moment ago. */
async function freePorts(count: 3): Promise<[number, number, number]>;
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await new Promise((resolve) => server.once("listening", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
