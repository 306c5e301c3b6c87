// Shared by every file of the suite: the project's cluster, and unique names in it.
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, inject } from "vitest";
import { type Body, Client, type Reply } from "./client.ts";
import { kubeconfigOf } from "./kubeconfig.ts";
import { type OwnTarget, startTarget } from "./target.ts";

const shared = inject("shared");

/** The shared cluster's administrator. */
export const admin = new Client(shared.access);

/** A name that no other test uses. */
export function unique(stem: string): string {
  return `${stem}-${randomBytes(4).toString("hex")}`;
}

/** Creates a namespace that only the caller uses. Returns its name. */
export async function createNamespace(labels?: Record<string, string>): Promise<string> {
  const name = unique("suite");
  await admin.post("/api/v1/namespaces", { metadata: { name, labels } });
  if (!shared.disposable) onEnd(() => admin.reply("DELETE", `/api/v1/namespaces/${name}`));
  return name;
}

/** Removes a cluster-wide object at the end of the file, if the cluster outlives the suite. */
export function removeAtEnd(path: string): void {
  if (!shared.disposable) onEnd(() => admin.reply("DELETE", path));
}

const endings: (() => Promise<unknown>)[] = [];
function onEnd(ending: () => Promise<unknown>): void {
  endings.push(ending);
}
/** Ends everything that the file has started. The files of a worker share the administrator's connections. */
export async function endFile(): Promise<void> {
  for (const ending of endings.splice(0)) await ending();
}

/** Tests that need a controller-manager. If they are skipped, the run's first lines say so. */
export const describeControllers = describe.skipIf(!shared.controllers);

/** Tests that disturb their cluster. If they are skipped, the run's first lines say so. */
export const describeHistory = describe.skipIf(!inject("startable"));

/** Starts a cluster of the project's kind that the test may disturb. It ends with the file. */
export async function startOwn(gates: readonly string[] = []): Promise<OwnTarget & { readonly admin: Client }> {
  const target = await startTarget(inject("target"), gates);
  const client = new Client(target.access);
  onEnd(async () => {
    await client.close();
    await target.close();
  });
  return Object.assign(target, { admin: client });
}

/** Repeats the request until `isDone` accepts the answer, for at most 30 s. Returns that answer. */
export async function eventually<T>(ask: () => Promise<T>, isDone: (answer: T) => boolean): Promise<T> {
  const deadline = AbortSignal.timeout(30_000);
  for (;;) {
    const answer = await ask();
    if (isDone(answer)) return answer;
    if (deadline.aborted) throw new Error(`waited 30 s in vain; the last answer was ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Waits until `path` answers 404. */
export function gone(path: string): Promise<Reply> {
  return eventually(
    () => admin.reply("GET", path),
    (reply) => reply.status === 404,
  );
}

/** A client that acts as a ServiceAccount with a token from TokenRequest. */
export async function asServiceAccount(namespace: string, name: string): Promise<Client> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const token: Body = await admin.post(path, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: {},
  });
  const client = new Client({ url: shared.access.url, ca: shared.access.ca, token: token.status.token });
  onEnd(() => client.close());
  return client;
}

export interface Run {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The real kubectl as the administrator, with `namespace` as its default. */
export class Kubectl {
  readonly folder = mkdtempSync(join(tmpdir(), "watchfire-kubectl-"));
  private readonly kubeconfig = join(this.folder, "kubeconfig");

  constructor(namespace: string) {
    writeFileSync(this.kubeconfig, kubeconfigOf(shared.access, namespace), { mode: 0o600 });
    onEnd(async () => rmSync(this.folder, { recursive: true, force: true }));
  }

  /** Runs kubectl and yields its output line by line, until the caller returns. */
  async *lines(args: readonly string[]): AsyncGenerator<string, void> {
    const child = spawn(inject("kubectl"), this.withAccess(args), {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: 40_000,
    });
    try {
      yield* createInterface({ input: child.stdout });
    } finally {
      child.kill("SIGKILL");
    }
  }

  /** Runs kubectl with `input` as its standard input. Never throws because of its exit status. */
  run(args: readonly string[], input?: string): Promise<Run> {
    return new Promise((resolve) => {
      const child = execFile(inject("kubectl"), this.withAccess(args), { timeout: 40_000 }, (error, stdout, stderr) => {
        resolve({ status: error ? Number(error.code ?? -1) : 0, stdout, stderr });
      });
      // A kubectl that fails early does not read its input.
      child.stdin?.on("error", () => {});
      child.stdin?.end(input ?? "");
    });
  }

  /** Runs kubectl and returns its output. Throws if it fails. */
  async ok(args: readonly string[], input?: string): Promise<string> {
    const { status, stdout, stderr } = await this.run(args, input);
    if (status !== 0) throw new Error(`kubectl ${args.join(" ")}: exit status ${status}\n${stderr}${stdout}`);
    return stdout;
  }

  private withAccess(args: readonly string[]): string[] {
    return [`--kubeconfig=${this.kubeconfig}`, `--cache-dir=${join(this.folder, "cache")}`, ...args];
  }
}
