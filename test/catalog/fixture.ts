// A folder that the command line deploys, and a runtime that loads the deployed functions.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import { TrustedKeys } from "../../runtime/catalog/signature.ts";
import { parse } from "../../runtime/cli/command.ts";
import { deploy } from "../../runtime/cli/deploy.ts";
import type { RuntimeOptions } from "../../runtime/host/components.ts";
import { type Result, watchfire } from "../cli/run.ts";
import { admin, cluster } from "../scenarios/cluster.ts";
import type { Access, Body } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { type FunctionFiles, Installation, writeFunction } from "../tools/installation.ts";

/** The namespace of an `Installation`. */
export const home = "default";

const rbac = "/apis/rbac.authorization.k8s.io/v1";

/** The kinds of deployed objects, with their paths. */
const kinds = {
  ConfigMap: "/api/v1/configmaps",
  ServiceAccount: "/api/v1/serviceaccounts",
  Role: `${rbac}/roles`,
  RoleBinding: `${rbac}/rolebindings`,
  ClusterRole: `${rbac}/clusterroles`,
  ClusterRoleBinding: `${rbac}/clusterrolebindings`,
};

/** A functions folder that is deployed for a runtime with an account used only by this test. */
export class CatalogFixture {
  /** The runtime's account, used only by this test. */
  readonly account = `wf-${randomBytes(4).toString("hex")}`;
  readonly folder: string;
  readonly functions: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.functions = join(folder, "functions");
  }

  static async create(): Promise<CatalogFixture> {
    const fixture = new CatalogFixture(await mkdtemp(join(tmpdir(), "watchfire-fixture-")));
    onTestFinished(() => rm(fixture.folder, { recursive: true, force: true }));
    const access: Access = { url: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken };
    await writeFile(join(fixture.folder, "kubeconfig"), kubeconfigOf(access, home));
    return fixture;
  }

  define(name: string, files: FunctionFiles): Promise<void> {
    return writeFunction(this.functions, name, files);
  }

  remove(name: string): Promise<void> {
    return rm(join(this.functions, name), { recursive: true });
  }

  /** Runs `watchfire deploy` in a separate process. */
  tryDeploy(...more: string[]): Promise<Result> {
    return watchfire(["deploy", ...this.arguments, ...more]);
  }

  /** Runs another command for the same runtime in a separate process. */
  run(name: string, ...more: string[]): Promise<Result> {
    return watchfire([name, ...this.runtime, ...more]);
  }

  /**
   * Runs a deployment that must succeed in this process, which saves a second. Returns its message about each function.
   */
  async deploy(...more: string[]): Promise<Record<string, string>> {
    const said: string[] = [];
    const spies = [process.stdout, process.stderr].map((stream) =>
      vi.spyOn(stream, "write").mockImplementation((text) => said.push(String(text)) > 0),
    );
    const status = await deploy.run(parse(deploy, [...this.arguments, ...more])).finally(() => {
      for (const spy of spies) spy.mockRestore();
    });
    if (status !== 0) throw new Error(`deploy: ${status}\n${said.join("")}`);
    const rows = (said[0] ?? "").split("\n").map((line) => line.split(/\s+/));
    return Object.fromEntries(
      rows.flatMap(([name, fate]) => (name && fate && name !== "deleted" && name !== "kept" ? [[name, fate]] : [])),
    );
  }

  /** A runtime that loads the deployed functions. It ends with the test. */
  async install(more: Partial<RuntimeOptions> = {}): Promise<Installation> {
    const connection = { server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken };
    const made = await Installation.on(connection, undefined, { account: this.account, deployed: true, ...more });
    onTestFinished(() => made[Symbol.asyncDispose]());
    return made;
  }

  /** The deployed ConfigMaps, including the index. */
  async configMaps(): Promise<Body[]> {
    return (await admin.get(configMaps, { labelSelector: this.selector })).items;
  }

  /** The ConfigMap of a function in the index. */
  async configMapOf(name: string): Promise<Body> {
    const entry = (await this.index()).functions.find((each) => each.name === name);
    return admin.get(`${configMaps}/${entry?.configMap}`);
  }

  /** Every object with the runtime's label: its name as of `objects`, its labels, its path and its version. */
  async bodies(): Promise<{ name: string; labels: Record<string, string>; path: string; version: string }[]> {
    const lists = Object.entries(kinds).map(async ([kind, path]) => {
      const { items }: { items: Body[] } = await admin.get(path, { labelSelector: this.selector });
      const [, group = "", plural = ""] = /^(.*)\/([a-z]+)$/.exec(path) ?? [];
      return items.map(({ metadata: { name, namespace, labels = {}, resourceVersion } }) => ({
        name: `${kind}/${namespace ?? ""}/${name.replace(this.account, "W")}`,
        labels,
        path: `${group}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${plural}/${name}`,
        version: String(resourceVersion),
      }));
    });
    return (await Promise.all(lists)).flat();
  }

  /** The version of every object: the same if nothing was written. */
  async versions(): Promise<string[]> {
    return (await this.bodies()).map(({ name, version }) => `${name} ${version}`).sort();
  }

  /** The keys that a runtime trusts. */
  trust(file: string): TrustedKeys {
    return TrustedKeys.read([file]);
  }

  /** Every object with the runtime's label, as `kind/namespace/name`, with the account's name as `W`. */
  async objects(): Promise<string[]> {
    const lists = Object.entries(kinds).map(async ([kind, path]) => {
      const { items } = await admin.get(path, { labelSelector: this.selector });
      return items.map(
        ({ metadata }) => `${kind}/${metadata.namespace ?? ""}/${metadata.name.replace(this.account, "W")}`,
      );
    });
    return (await Promise.all(lists)).flat().sort();
  }

  async index(): Promise<{ functions: { name: string; configMap: string; sha256: string }[] }> {
    return JSON.parse((await admin.get(this.indexPath)).data["functions.json"]);
  }

  async setIndex(index: object): Promise<void> {
    await admin.patch(this.indexPath, { data: { "functions.json": JSON.stringify(index) } });
  }

  /** Replaces the index. */
  async makeIndex(index: object): Promise<void> {
    const labels = { "watchfire.dev/runtime": this.account, "watchfire.dev/namespace": home };
    const metadata = { name: `${this.account}-functions`, labels };
    const data = { "functions.json": JSON.stringify(index) };
    await admin.apply(this.indexPath, { apiVersion: "v1", kind: "ConfigMap", metadata, data }, "test", { force: true });
  }

  /** The objects that are kept of revisions: records and copies of code. */
  async kept(): Promise<Body[]> {
    return (await admin.get(configMaps, { labelSelector: `watchfire.dev/kept=${this.account}` })).items;
  }

  /** The copies of code that are kept of revisions. */
  async copies(): Promise<Body[]> {
    return (await this.kept()).filter(({ metadata }) => metadata.labels?.["watchfire.dev/function"] !== undefined);
  }

  private get arguments(): string[] {
    return ["--functions", this.functions, ...this.runtime];
  }

  private get runtime(): string[] {
    return ["--service-account", this.account, "--kubeconfig", join(this.folder, "kubeconfig")];
  }

  get indexPath(): string {
    return `${configMaps}/${this.account}-functions`;
  }

  get selector(): string {
    return `watchfire.dev/runtime=${this.account}`;
  }
}

/** Writes a pair of keys as files into a folder. */
export function makeKeys(folder: string): { readonly private: string; readonly public: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const file = join(folder, randomBytes(4).toString("hex"));
  writeFileSync(`${file}.key`, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  writeFileSync(`${file}.pub`, publicKey.export({ type: "spki", format: "pem" }));
  return { private: `${file}.key`, public: `${file}.pub` };
}

export const configMaps = `/api/v1/namespaces/${home}/configmaps`;
