import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FunctionAccounts } from "../../runtime/access/function-accounts.ts";
import { type FunctionReport, totalOf } from "../../runtime/control/function-status/function-report.ts";
import type { RuntimeOptions } from "../../runtime/host/components.ts";
import { Host } from "../../runtime/host/host.ts";
import type { Status } from "../../runtime/host/status.ts";
import type { SourceStatus } from "../../runtime/informer/fanout/observer.ts";
import { connectDirect, type DirectConnection } from "../../runtime/kube/direct.ts";
import type { SharedTransport } from "../../runtime/kube/transport.ts";
import { explanationSchema, type TriggerExplanation } from "../../runtime/observe/explanation.ts";
import { FunctionLog } from "../../runtime/observe/function-log.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { readToken } from "../../runtime/observe/token-file.ts";
import { ImpatientClock } from "./impatient-clock.ts";
import { RecordingTransport } from "./recording-transport.ts";
import { until } from "./until.ts";

/** Limit of the waits for a change to become visible to a user, in milliseconds, a busy machine included. */
const patienceMs = 45_000;

/** Logs each delivery with a one-line summary: `Modified a=2 synthetic (relist)`. */
const recorder = `
export default async (event, ctx) => {
  const { type, object, attempt } = event;
  const words = [type, object.metadata.name + "=" + (object.data ?? object.spec)?.v];
  for (const flag of ["initial", "synthetic", "finalStateUnknown", "redelivered"]) if (event[flag]) words.push(flag);
  if (event.reason) words.push("(" + event.reason + ")");
  if (attempt > 1) words.push("#" + attempt);
  ctx.log.info("told", { line: words.join(" "), id: event.id });
  await work(event, ctx);
};
`;
const nothing = "const work = async () => {};\n";

/** A log line. The fields of a handler's line are in `fields`. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly function?: string;
  readonly fields?: { readonly line?: string; readonly id?: string };
  readonly [field: string]: unknown;
}

export interface FunctionFiles {
  /** The trigger's `watch`. */
  readonly watch: object;
  /** More of the manifest's `spec`. */
  readonly spec?: object;
  /** The body of `work(event, ctx)`, which runs once the event is logged. Default: empty. */
  readonly work?: string;
}

/** Service accounts for functions that do not act as the runtime. */
export interface OwnAccounts {
  readonly namespace: string;
  /** The runtime's ServiceAccount. */
  readonly account: string;
}

/** Writes a function's files into a functions folder. */
export async function writeFunction(
  functions: string,
  name: string,
  { watch, spec = {}, work }: FunctionFiles,
): Promise<void> {
  const folder = join(functions, name);
  await mkdir(folder, { recursive: true });
  const manifest = {
    apiVersion: "watchfire.dev/v1alpha1",
    kind: "Function",
    metadata: { name },
    spec: { handler: "./handler.ts", triggers: [{ name: "trigger", watch }], ...spec },
  };
  await writeFile(join(folder, "function.yaml"), JSON.stringify(manifest));
  const body = work === undefined ? nothing : `const work = async (event, ctx) => {${work}};\n`;
  await writeFile(join(folder, "handler.ts"), `${body}${recorder}`);
}

/**
 * A functions folder, a data folder and the whole runtime on them in this process, which a test can kill and restart.
 */
export class Installation {
  readonly clock = new ImpatientClock();
  readonly transport: RecordingTransport;
  readonly lines: LogLine[] = [];
  private readonly folder: string;
  private readonly connection: SharedTransport;
  private runtime: Host | undefined;

  private readonly own: OwnAccounts | undefined;
  private readonly more: Partial<RuntimeOptions>;

  private constructor(
    folder: string,
    connection: DirectConnection,
    own: OwnAccounts | undefined,
    more: Partial<RuntimeOptions>,
  ) {
    this.folder = folder;
    this.more = more;
    this.connection = connectDirect({ ...connection, clock: this.clock });
    this.transport = new RecordingTransport(this.connection);
    this.own = own;
  }

  /**
   * @param own functions act as accounts of their own, in this namespace.
   * @param more options in which it differs from a plain start
   */
  static async on(
    connection: DirectConnection,
    own?: OwnAccounts,
    more: Partial<RuntimeOptions> = {},
  ): Promise<Installation> {
    const folder = await mkdtemp(join(tmpdir(), "watchfire-installation-"));
    await mkdir(join(folder, "functions"));
    return new Installation(folder, connection, own, more);
  }

  /** Writes a function's files; by default those of a function that records its deliveries. */
  define(name: string, files: FunctionFiles): Promise<void> {
    return writeFunction(join(this.folder, "functions"), name, files);
  }

  /** Its functions folder. */
  get functions(): string {
    return join(this.folder, "functions");
  }

  /** Its data folder. */
  get data(): string {
    return join(this.folder, "data");
  }

  /** Points it at another cluster, before the next start. */
  moveTo(connection: DirectConnection): Promise<void> {
    return this.transport.replace(connectDirect({ ...connection, clock: this.clock }));
  }

  /** Resolves once every function that can run has caught up. */
  async start(): Promise<void> {
    await this.open();
    await this.sees("the runtime is ready", () => this.running.ready);
    const disabled = this.lines.find(({ msg }) => msg === "function disabled");
    if (disabled) throw new Error(String(disabled.error));
  }

  /** Starts without waiting for readiness. */
  async open(): Promise<void> {
    const identified = { transport: this.connection, clock: this.clock, random: () => 0.5 };
    const functionLog = new FunctionLog({ write: (line: string) => void this.lines.push(JSON.parse(line)) });
    const log = createLog("debug", functionLog);
    this.runtime = await Host.start(
      {
        functions: join(this.folder, "functions"),
        data: this.data,
        transport: this.transport,
        namespace: this.own?.namespace ?? "default",
        ...(this.own && { accounts: new FunctionAccounts({ ...this.own, ...identified }) }),
        listen: { host: "127.0.0.1", port: 0 },
        clock: this.clock,
        // Jitter in the middle, so that a wait differs from every fixed limit.
        random: () => 0.5,
        log,
        functionLog,
        ...this.more,
      },
      new AbortController().signal,
    );
  }

  /** Reads the functions folder again. */
  reload(): Promise<void> {
    return this.running.reload();
  }

  /** Ends like a SIGKILL: nothing more is saved. */
  async kill(): Promise<void> {
    await this.runtime?.halt();
    this.runtime = undefined;
  }

  /** Ends like a SIGTERM. */
  async drain(): Promise<void> {
    await this.running.drain();
    this.runtime = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.transport.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Deliveries to a function's handler, oldest first. */
  told(name: string): string[] {
    return this.lines
      .filter((line) => line.function === name && line.msg === "told")
      .map(({ fields }) => fields?.line ?? "");
  }

  /** Resolves when the handler has received `line` (or `count` lines in total). */
  async hears(name: string, what: string | number): Promise<void> {
    const limit = `${name} is told ${what}`;
    await this.sees(limit, () => {
      const told = this.told(name);
      return typeof what === "number" ? told.length >= what : told.includes(what);
    });
  }

  /** Waits for something that a user can see. */
  async sees(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    try {
      await until(what, patienceMs, async () => holds());
    } catch (error) {
      const end = this.lines.slice(-25).map((line) => JSON.stringify(line).slice(0, 400));
      throw new Error(`${what}: in vain; the log's end:\n${end.join("\n")}`, { cause: error });
    }
  }

  /** Waits until everything received is handled and saved. */
  async quiet(): Promise<void> {
    await this.sees("nothing waits", async () =>
      (await this.status()).functions.every(
        ({ reason, queued, inFlight, spilled }) => reason === "Suspended" || totalOf(queued, inFlight, spilled) === 0,
      ),
    );
    await this.saved();
  }

  /** Waits until all completed work is on disk. A live process saves it within 250 ms; the wait is skipped. */
  async saved(): Promise<void> {
    await this.sees("nothing is to be saved", () => this.clock.cutShort(200, 300) === 0);
  }

  /** Address of the runtime's endpoints. */
  get url(): string {
    return this.running.url;
  }

  async status(): Promise<Status> {
    return (await fetch(`${this.running.url}/status`)).json() as Promise<Status>;
  }

  async function(name: string): Promise<FunctionReport | undefined> {
    return (await this.status()).functions.find((each) => each.name === name);
  }

  /** The sources of a kind. */
  async sources(kind: string): Promise<SourceStatus[]> {
    const { sources } = await this.status();
    return sources.filter((each): each is SourceStatus => each.kind === kind && each.state !== "standby");
  }

  /** The sum over the series of a metric whose labels include all of `labels`. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const text = await (await fetch(`${this.running.url}/metrics`)).text();
    const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
    return text
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .filter((line) => wanted.every((pair) => line.includes(pair)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
  }

  async deadLetters(): Promise<DeadLetterRow[]> {
    return (await fetch(`${this.running.url}/dead-letters`, { headers: this.bearing })).json() as Promise<
      DeadLetterRow[]
    >;
  }

  /** A complete dead letter, as text. */
  async shown(id: string): Promise<string> {
    return (await fetch(`${this.running.url}/dead-letters/${id}`, { headers: this.bearing })).text();
  }

  /** Explains why an object of one namespace was not delivered to a function, by its only trigger. */
  async explain(name: string, namespace: string, object: string): Promise<TriggerExplanation> {
    const query = new URLSearchParams({ namespace, name: object });
    const response = await fetch(`${this.running.url}/explain/${name}?${query}`, { headers: this.bearing });
    if (!response.ok) throw new Error(await response.text());
    const [trigger] = explanationSchema.parse(await response.json()).triggers;
    if (!trigger) throw new Error(`${name} is not loaded`);
    return trigger;
  }

  /** Returns the answer that a command gets from the endpoints. */
  async ask<T>(path: string): Promise<T> {
    const answer = await fetch(`${this.running.url}/${path}`, { headers: this.bearing });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as T;
  }

  async replay(...ids: string[]): Promise<void> {
    await this.post("dead-letters/replay", { ids });
  }

  /** Delivers the event of a run again. */
  redeliver(name: string, run: string): Promise<unknown> {
    return this.post(`functions/${name}/redeliver`, { run });
  }

  private async post(path: string, body: object): Promise<unknown> {
    const answer = await fetch(`${this.running.url}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...this.bearing },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  private get bearing() {
    return { authorization: `Bearer ${readToken(join(this.folder, "data"))}` };
  }

  private get running(): Host {
    if (!this.runtime) throw new Error("the runtime does not run");
    return this.runtime;
  }
}

/** A row of `/dead-letters`. */
export interface DeadLetterRow {
  readonly id: string;
  readonly name: string;
  readonly attempts: number;
  readonly error: { readonly message: string };
}
