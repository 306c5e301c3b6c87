import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import type { Body, Client } from "../target/client.ts";
import { kubectlPath } from "../tools/kubectl.ts";
import { until } from "../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../tools/watchfire-process.ts";
import { functionsFolder } from "./shipped.ts";

/** Limit of the time until a user sees the effects of a change, in milliseconds, with a margin for a busy machine. */
const patienceMs = 15_000;

/** A cluster with all shipped functions. Each part runs in a separate process, as at users. */
export class FunctionsFixture {
  readonly client: Client;
  readonly runtime: RuntimeProcess;
  private readonly cluster: ClusterProcess;
  private readonly folder: string;

  private constructor(folder: string, cluster: ClusterProcess, runtime: RuntimeProcess) {
    this.folder = folder;
    this.cluster = cluster;
    this.client = cluster.client;
    this.runtime = runtime;
  }

  static async start(): Promise<FunctionsFixture> {
    const folder = await mkdtemp(join(tmpdir(), "watchfire-functions-"));
    const cluster = await ClusterProcess.start(folder);
    const fixture = new FunctionsFixture(
      folder,
      cluster,
      new RuntimeProcess(folder, cluster.kubeconfig, functionsFolder),
    );
    try {
      await fixture.runtime.start();
      return fixture;
    } catch (error) {
      await fixture.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.runtime.kill();
    await this.cluster.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** The object once `holds` accepts it; by default, once it exists. */
  async object(path: string, holds: (object: Body) => boolean = () => true): Promise<Body> {
    return until(path, patienceMs, async () => {
      const { status, body } = await this.client.reply("GET", path);
      return status === 200 && holds(body) && body;
    });
  }

  /** Resolves when the object does not exist. */
  async gone(path: string): Promise<void> {
    await until(`${path} is gone`, patienceMs, async () => (await this.client.reply("GET", path)).status === 404);
  }

  /** The Event about an object with that reason. */
  async event(namespace: string, name: string, reason: string): Promise<Body> {
    const fieldSelector = `involvedObject.name=${name},reason=${reason}`;
    return until(`an Event ${reason} about ${name}`, patienceMs, async () => {
      const events = await this.client.get(`/api/v1/namespaces/${namespace}/events`, { fieldSelector });
      return events.items[0];
    });
  }

  async namespace(name: string, labels: Record<string, string> = {}): Promise<void> {
    await this.client.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } });
  }

  async configMap(namespace: string, name: string, data: object, metadata: object = {}): Promise<Body> {
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data };
    return this.client.post(`/api/v1/namespaces/${namespace}/configmaps`, object);
  }

  /** Runs the real kubectl and returns its output. */
  async kubectl(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(await kubectlPath(), [
      "--kubeconfig",
      this.cluster.kubeconfig,
      ...args,
    ]);
    return stdout;
  }

  /** The runtime's log, line by line. */
  async log(): Promise<Record<string, unknown>[]> {
    const lines = (await readFile(this.runtime.logFile, "utf8")).split("\n").filter((line) => line.startsWith("{"));
    return lines.map((line) => JSON.parse(line));
  }
}

/** The objects of a YAML file in a function's folder. */
export function manifest(path: string): Body[] {
  return parseAllDocuments(readFileSync(join(functionsFolder, path), "utf8")).map((document) => document.toJS());
}

export const configMapPath = (namespace: string, name: string) => `/api/v1/namespaces/${namespace}/configmaps/${name}`;
