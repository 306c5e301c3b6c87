import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { totalOf } from "../../runtime/control/function-status/function-report.ts";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import type { Access, Client } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { Replica, type ReplicaOptions } from "../tools/replica.ts";
import { until } from "../tools/until.ts";
import { settled } from "./audit.ts";
import { type Edit, type Shape, wantedBy } from "./edits.ts";
import {
  type Delivery,
  type Fact,
  type Namespaces,
  namespacesOf,
  type Records,
  readFacts,
  recordsIn,
  revision,
} from "./ledger.ts";
import { LoggedRecords } from "./logged-records.ts";
import { type Recording, writeRecorders } from "./recorders.ts";
import type { Gap, Verdict, Waking } from "./verdict.ts";
import { Writer } from "./writer-process.ts";

/** Polling interval of replicas and records, in milliseconds. Several fixtures share two cores. */
const pollMs = 50;
/**
 * Interval in which the cluster's history is read, in milliseconds. An API server may keep little more than a minute of it.
 */
const readOnMs = 20_000;

/** The objects that are written, and the form in which their deliveries are recorded. */
interface Load extends Recording {
  /** Number of ConfigMaps that the writer changes. Default 60. */
  readonly objects?: number;
}

/** Replicas of one runtime, a process that writes while they are killed and stopped, and an auditor that compares. */
export class ReplicasFixture {
  /** Namespace of the Lease and the Secrets. */
  readonly namespace: string;
  private readonly admin: Client;
  private readonly folder: string;
  private readonly kubeconfig: string;
  private readonly where: Namespaces;
  private readonly recording: Recording;
  private readonly facts: Fact[] = [];
  /** Revision up to which the cluster's history was read. */
  private read: number;
  private reading: Promise<void> = Promise.resolve();
  private readonly timer: NodeJS.Timeout;
  private readonly writer: Writer;
  private readonly records: Records;
  private readonly replicas: Replica[] = [];
  private readonly wakings: Waking[] = [];
  private readonly edits: Edit[] = [];
  private readonly gaps: Gap[] = [];
  /** Functions folder that replicas are started with. */
  private functions: string;
  private pods = 0;
  /** False while the API server may be away. */
  private isServed = true;

  private constructor(admin: Client, namespace: string, folder: string, kubeconfig: string, began: number, load: Load) {
    const { shares, apart, objects = 60 } = load;
    this.recording = load;
    this.admin = admin;
    this.namespace = namespace;
    this.folder = folder;
    this.functions = join(folder, "functions");
    this.kubeconfig = kubeconfig;
    this.where = namespacesOf(`${namespace}-audit`);
    this.read = began;
    const logs = () => [...new Set(this.replicas.map(({ options }) => options.logFile))];
    this.records = apart ? new LoggedRecords(logs) : recordsIn(admin, this.where);
    this.timer = setInterval(() => {
      if (this.isServed) void this.readOn().catch(() => undefined);
    }, readOnMs);
    this.writer = new Writer(kubeconfig, objects, 20261121, this.where, shares);
  }

  /**
   * Sets up a fixture.
   * @param namespace one that nobody else uses; further namespaces are created with its name as their prefix
   */
  static async set(admin: Client, access: Access, namespace: string, load: Load = {}): Promise<ReplicasFixture> {
    const folder = await mkdtemp(join(tmpdir(), "watchfire-replicas-"));
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, kubeconfigOf(access), { mode: 0o600 });
    const { objects, records } = namespacesOf(`${namespace}-audit`);
    for (const name of [namespace, objects, records]) await admin.post("/api/v1/namespaces", { metadata: { name } });
    for (const name of checkpointSecrets("watchfire")) {
      await admin.post(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, type: "Opaque" });
    }
    await writeRecorders(join(folder, "functions"), { objects, records }, load);
    const began = await historyBegins(admin, { objects, records });
    return new ReplicasFixture(admin, namespace, folder, kubeconfig, began, load);
  }

  /** Returns a folder with the same functions, each spread over so many slots. */
  async inShards(shards: number): Promise<string> {
    const functions = join(this.folder, `functions-${shards}`);
    await writeRecorders(functions, this.where, { ...this.recording, shards });
    return functions;
  }

  /**
   * Starts a replica; resolves when its endpoints are up. Each is a new pod's container unless `over` names the pod.
   */
  async start(store: ReplicaOptions["store"], over: Partial<ReplicaOptions> = {}): Promise<Replica> {
    const { kubeconfig, namespace, folder } = this;
    const number = this.pods++;
    const { pod = `watchfire-${number}` } = over;
    const replica = await Replica.start({
      kubeconfig,
      namespace,
      functions: this.functions,
      data: join(folder, pod),
      pod,
      uid: `uid-${number}`,
      store,
      logFile: join(folder, `${pod}.log`),
      ...over,
    });
    this.replicas.push(replica);
    return replica;
  }

  /**
   * Edits the manifest of all functions: replicas have it that are started from now on. All that happened before is handled
   * first; `restart` ends all others while more is written, and resolves when the functions run again.
   */
  async edit(shape: Shape, restart: () => Promise<void>): Promise<void> {
    await this.verdict();
    const from = await revision(this.admin);
    const functions = join(this.folder, `functions-edit-${this.edits.length}`);
    await writeRecorders(functions, this.where, this.recording, shape);
    this.functions = functions;
    await restart();
    this.edits.push({ from, to: await revision(this.admin), wanted: wantedBy(shape) });
  }

  /**
   * Loses the cluster's history while no replica works: `end` ends them amid writing, `compact` drops what has happened, and `begin`
   * starts one. Only net changes of this time are delivered.
   */
  async loseHistory(
    operations: number,
    steps: Readonly<Record<"end" | "compact" | "begin", () => Promise<unknown>>>,
  ): Promise<void> {
    await this.verdict();
    const from = await revision(this.admin);
    await this.load(operations);
    this.writer.allow(operations);
    await steps.end();
    await this.allWritten();
    await this.readOn();
    this.isServed = false;
    await steps.compact();
    this.read = await historyBegins(this.admin, this.where);
    this.isServed = true;
    await steps.begin();
    this.gaps.push({ from, to: await revision(this.admin) });
  }

  /** Milliseconds until one of the candidates reports that it is active, and which one. */
  async takesOver(...candidates: readonly [Replica, ...Replica[]]): Promise<{ active: Replica; ms: number }> {
    const from = performance.now();
    const active = await until(
      "somebody is active",
      40_000,
      async () => {
        for (const each of candidates) if (await each.isActive()) return each;
        return undefined;
      },
      pollMs,
    );
    return { active, ms: performance.now() - from };
  }

  /** Waits until the first replica has read the objects that exist. Changes before that are delivered to nobody. */
  async begins(...candidates: readonly [Replica, ...Replica[]]): Promise<Replica> {
    const { active } = await this.takesOver(...candidates);
    await until(`${active.name} has its first list`, 40_000, async () => (await active.read("/readyz")).ok, pollMs);
    return active;
  }

  /** Allows the writer so many further operations, without waiting. */
  write(operations: number): void {
    this.writer.allow(operations);
  }

  /** Allows the writer so many further operations, and waits until half of their changes are delivered. */
  async load(operations: number): Promise<void> {
    const before = await this.written();
    this.writer.allow(operations);
    const half = async () => {
      this.writer.assertRunning();
      return (await this.written()) > before + operations / 2;
    };
    await until("handlers record", 60_000, half, pollMs);
  }

  /** Number of operations that the writer has done. */
  get done(): number {
    return this.writer.done;
  }

  /** Number of allowed operations that are left. */
  get behind(): number {
    return this.writer.behind;
  }

  /** Resolves when the writer has done all allowed operations. */
  allWritten(): Promise<void> {
    return this.writer.left(0);
  }

  /** Resolves when all allowed operations are written, and no event waits or runs on the active replica. */
  async allHandledBy(active: Replica): Promise<void> {
    await this.allWritten();
    await this.readOn();
    const resourceVersion = this.facts.at(-1)?.resourceVersion ?? 0;
    const handled = async () => {
      const { functions, sources } = await active.status();
      const received = sources.every((it) => "resourceVersion" in it && Number(it.resourceVersion) >= resourceVersion);
      return received && functions.every(({ queued, inFlight }) => totalOf(queued, inFlight) === 0);
    };
    await until("all is handled", 60_000, handled, pollMs);
  }

  /**
   * Resumes a stopped replica after the others have delivered everything, and returns the status that it exits with. Only what it
   * was
   * writing when it was stopped may still be sent then (`runtime/lease/DESIGN.md`, what cannot be excluded).
   */
  async wake(stopped: Replica): Promise<number | null> {
    await this.verdict();
    const from = await revision(this.admin);
    stopped.signal("SIGCONT");
    const status = await stopped.ended();
    this.wakings.push({ from, to: await revision(this.admin) });
    return status;
  }

  /** Number of recorded deliveries. */
  written(): Promise<number> {
    return this.records.written();
  }

  deliveries(): Promise<Delivery[]> {
    return this.records.deliveries();
  }

  /** The verdict on everything so far, once all of it is delivered or deliveries stop. */
  async verdict(): Promise<Verdict> {
    await this.allWritten();
    await this.readOn();
    return settled(this.records, this.facts, { wakings: this.wakings, edits: this.edits, gaps: this.gaps });
  }

  /** Reads the history since the last call. After a failure it always fails. */
  private readOn(): Promise<void> {
    this.reading = this.reading.then(async () => {
      const now = await revision(this.admin);
      const found = await readFacts(this.admin, this.read, this.where);
      this.facts.push(...found);
      this.read = found.at(-1)?.resourceVersion ?? now;
    });
    return this.reading;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.writer.stop();
    clearInterval(this.timer);
    await this.reading.catch(() => undefined);
    await Promise.all(this.replicas.splice(0).map((each) => each.kill()));
    for (const name of [...Object.values(this.where), this.namespace]) {
      await this.admin.reply("DELETE", `/api/v1/namespaces/${name}`);
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Returns a revision after which the history can be read. A server that has just started may not serve what it listed a moment ago. */
const historyBegins = (admin: Client, where: Namespaces): Promise<number> =>
  until("history begins", 60_000, async () => {
    const now = await revision(admin);
    await readFacts(admin, now, where);
    return now;
  });
