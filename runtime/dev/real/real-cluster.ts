import { generateKeyPairSync, randomBytes } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { pause, systemClock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { makeFolder } from "../../base/folder.ts";
import { systemReason } from "../../base/wording.ts";
import { connectDirect } from "../../kube/direct.ts";
import { LeashedProcess } from "./leashed-process.ts";
import type { RealPrograms } from "./real-programs.ts";

/** The controllers that the embedded cluster has as well. They need no node. */
const controllers = [
  "namespace-controller",
  "garbage-collector-controller",
  "serviceaccount-controller",
  "root-ca-certificate-publisher-controller",
];

/** Go's garbage collector runs when the heap has grown by so many per cent; at its 100 a start takes a third more CPU time. */
const gcPercent = "300";

/** Start-up takes about 4 s on two idle cores; this is for busy ones. In milliseconds. */
const startLimitMs = 90_000;

/** How often a starting server is asked, in milliseconds. */
const askMs = 50;

/** Characters of a log that a failure quotes. */
const quotedLog = 2_000;

interface RealClusterOptions {
  readonly programs: RealPrograms;
  /** Holds etcd's files, keys and logs; what etcd keeps in it is taken up again. */
  readonly folder: string;
  /** More of the API server's command line. */
  readonly apiserverArgs?: readonly string[];
}

/**
 * A real kube-apiserver with its etcd on loopback, and a controller manager if there is one. For development: whoever reads the
 * folder is its administrator. Without a controller manager nobody makes ServiceAccounts, so Pods are admitted without them.
 */
export class RealCluster {
  readonly token = randomBytes(16).toString("hex");
  etcd: LeashedProcess | undefined;
  apiserver: LeashedProcess | undefined;
  private readonly options: RealClusterOptions;
  private manager: LeashedProcess | undefined;
  private certificate = "";
  private port = 0;
  private etcdAddress = "";
  private etcdPeerAddress = "";

  constructor(options: RealClusterOptions) {
    this.options = options;
  }

  /**
   * Resolves when the API server is ready.
   * @throws WatchfireError WF_DEV_REAL_START, or WF_DEV_CLUSTER_FILES if the folder cannot be written
   */
  static async start(options: RealClusterOptions): Promise<RealCluster> {
    const cluster = new RealCluster(options);
    try {
      await cluster.startAll();
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** PEM of the authority that signed the server's certificate. */
  get ca(): string {
    return this.certificate;
  }

  /** Address of etcd's client API. */
  get etcdUrl(): string {
    return this.etcdAddress;
  }

  /** Starts etcd on the port that it had before. */
  startEtcd(): void {
    this.etcd = this.run(this.options.programs.etcd, [
      `--data-dir=${this.file("etcd")}`,
      `--listen-client-urls=${this.etcdAddress}`,
      `--advertise-client-urls=${this.etcdAddress}`,
      `--listen-peer-urls=${this.etcdPeerAddress}`,
      "--unsafe-no-fsync",
      "--log-level=error",
    ]);
  }

  /** Starts the API server on the port that it had before; resolves when it is ready. */
  async startApiserver(): Promise<void> {
    this.apiserver = this.run(this.options.programs.apiserver, [
      `--etcd-servers=${this.etcdAddress}`,
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
      ...(this.options.programs.manager === undefined ? ["--disable-admission-plugins=ServiceAccount"] : []),
      ...(this.options.apiserverArgs ?? []),
    ]);
    await this.untilReady();
  }

  /** Resolves when the API server says that it is ready, and the default namespace is there. @throws WF_DEV_REAL_START */
  async untilReady(): Promise<void> {
    const deadline = performance.now() + startLimitMs;
    while (performance.now() < deadline) {
      const ended = [this.etcd, this.apiserver].find((program) => program && program.exitStatus !== null);
      if (ended) throw await this.fault(ended.name, `${ended.name} ended with status ${ended.exitStatus}`);
      if (await this.answers()) return;
      await pause(systemClock, askMs);
    }
    throw await this.fault("kube-apiserver", `kube-apiserver is not ready after ${startLimitMs / 1000} s`);
  }

  /** Writes a kubeconfig of the administrator, as JSON, which is YAML. @throws WatchfireError WF_DEV_CLUSTER_FILES */
  async writeKubeconfig(file: string): Promise<void> {
    const name = "watchfire";
    const ca = Buffer.from(this.certificate).toString("base64");
    const text = JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name, cluster: { server: this.url, "certificate-authority-data": ca } }],
      users: [{ name, user: { token: this.token } }],
      contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
      "current-context": name,
    });
    await writing(file, () => writeFile(file, text, { mode: 0o600 }));
  }

  /** Ends the programs; the folder stays. */
  async close(): Promise<void> {
    await Promise.all([this.manager?.kill(), this.apiserver?.kill(), this.etcd?.kill()]);
  }

  private async startAll(): Promise<void> {
    const { programs } = this.options;
    await this.writeFiles();
    const [client, peer, secure] = await freePorts(3);
    this.etcdAddress = `http://127.0.0.1:${client}`;
    this.etcdPeerAddress = `http://127.0.0.1:${peer}`;
    this.port = secure;
    this.startEtcd();
    await this.startApiserver();
    if (programs.manager === undefined) return;
    await this.writeKubeconfig(this.file("manager.kubeconfig"));
    this.manager = this.run(programs.manager, [
      `--kubeconfig=${this.file("manager.kubeconfig")}`,
      `--controllers=${controllers.join(",")}`,
      `--root-ca-file=${this.file("certs/apiserver.crt")}`,
      "--leader-elect=false",
      "--secure-port=0",
      "--kube-api-qps=200",
      "--kube-api-burst=400",
    ]);
  }

  /** Writes keys and tokens, and removes the logs and the certificate of the run before. */
  private async writeFiles(): Promise<void> {
    const keys = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
    const { folder } = this.options;
    await writing(folder, async () => {
      makeFolder(folder, 0o700);
      const old = ["certs", "etcd.log", "kube-apiserver.log", "kube-controller-manager.log"];
      for (const name of old) await rm(this.file(name), { recursive: true, force: true });
      await writeFile(this.file("sa.pub"), keys.publicKey);
      await writeFile(this.file("sa.key"), keys.privateKey, { mode: 0o600 });
      await writeFile(this.file("tokens.csv"), `${this.token},admin,admin,system:masters\n`, { mode: 0o600 });
    });
  }

  private async answers(): Promise<boolean> {
    this.certificate = await readFile(this.file("certs/apiserver.crt"), "utf8").catch(() => "");
    if (!this.certificate) return false;
    const transport = connectDirect({ server: this.url, ca: this.certificate, token: this.token });
    try {
      const { status, body } = await transport.request({ method: "GET", path: "/readyz" });
      body.resume();
      if (status !== 200) return false;
      await transport.json({ method: "GET", path: "/api/v1/namespaces/default" });
      return true;
    } catch {
      return false;
    } finally {
      await transport.close();
    }
  }

  private async fault(name: string, what: string): Promise<WatchfireError> {
    const file = this.file(`${name}.log`);
    const log = await readFile(file, "utf8").catch(() => "");
    const cause = new Error(`the end of ${file}:\n${log.slice(-quotedLog)}`);
    const last = log.trimEnd().split("\n").at(-1) ?? "";
    return new WatchfireError("WF_DEV_REAL_START", { what: `${what}: ${last}`, place: { file }, cause });
  }

  private run(path: string, args: string[]): LeashedProcess {
    const name = path.split("/").at(-1) ?? path;
    return new LeashedProcess(path, args, this.file(`${name}.log`), { GOGC: gcPercent });
  }

  private file(name: string): string {
    return join(this.options.folder, name);
  }
}

async function writing(file: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    throw new WatchfireError("WF_DEV_CLUSTER_FILES", { what: systemReason(cause), place: { file }, cause });
  }
}

/** Ports of loopback that were free a moment ago, all different. */
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
