import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { type Delivery, run } from "../../runtime/engine/delivery/delivery.ts";
import { Sandbox, type SandboxOptions } from "../../runtime/sandbox/host/sandbox.ts";
import type { Caller, HostReply } from "../../runtime/sandbox/host-calls.ts";
import { bundleFunction } from "../tools/bundle.ts";

/**
 * A handler that cannot be interrupted within one operation, and because of which its executor ends itself a second after the
 * limit.
 */
export const unstoppable = "export default () => (3n ** (10n ** 8n)).toString().length;";

/** One call of a guest, as the parent saw it. */
export interface SeenCall {
  readonly caller: Caller;
  readonly operation: string;
  readonly args: unknown;
  /** The arguments as received. */
  readonly text: string;
  readonly signal: AbortSignal;
}

/** A sandbox with real processes, a scripted answer to every call, and the output of its guests. */
export class SandboxFixture {
  readonly calls: SeenCall[] = [];
  readonly logs: { level: string; message: string; fields: Record<string, unknown>; id: string }[] = [];
  readonly metrics: { type: string; name: string; value: number; labels: Record<string, string> }[] = [];
  readonly deaths: { reason: string; culprits: readonly string[] }[] = [];
  /** Deaths that the sandbox logged. */
  readonly notes: { reason: string; detail: string; functions: string[] }[] = [];
  readonly sandbox: Sandbox;
  answer: (call: SeenCall) => HostReply | Promise<HostReply> = () => ({ ok: true, json: "{}" });
  private readonly folder = mkdtempSync(join(tmpdir(), "watchfire-sandbox-"));
  private ids = 0;

  constructor(options: Partial<SandboxOptions> = {}) {
    this.sandbox = new Sandbox({
      executors: 1,
      clock: systemClock,
      log: { info: () => {}, warn: (fields: object) => this.notes.push(fields as never) },
      hostCalls: {
        call: async (caller, operation, args, signal) => {
          const call = { caller, operation, args: JSON.parse(args) as unknown, text: args, signal };
          this.calls.push(call);
          return this.answer(call);
        },
      },
      output: {
        log: (caller, level, message, fields) => this.logs.push({ level, message, fields, id: caller.id }),
        metric: (_, type, name, value, labels) => this.metrics.push({ type, name, value, labels }),
      },
      observer: { executorDied: (reason, culprits) => this.deaths.push({ reason, culprits }) },
      ...options,
    });
  }

  /** Bundles a handler's text and loads it. */
  async load(
    name: string,
    code: string,
    limits: {
      memoryMb?: number;
      cpuMs?: number;
      env?: Record<string, string>;
      isolation?: "Handler" | "Event";
      trustGroup?: string;
      concurrency?: number;
      mode?: "All" | "Latest" | "Reconcile";
      instance?: string;
    } = {},
  ): Promise<void> {
    const handler = join(this.folder, `${name}.ts`);
    writeFileSync(handler, code);
    const bundle = await bundleFunction({ name, handler });
    const resources = { memoryBytes: (limits.memoryMb ?? 32) * 2 ** 20, cpuPerEventMs: limits.cpuMs ?? 500 };
    const { isolation = "Handler", trustGroup, concurrency, mode = "All", env = {}, instance } = limits;
    const delivery =
      concurrency === undefined && mode === "All" ? {} : { delivery: { concurrency: concurrency ?? 4, mode } };
    await this.sandbox.load(
      { name, resources, isolation, ...(trustGroup && { trustGroup }), ...delivery },
      bundle,
      env,
      instance,
    );
  }

  delivery(name: string, over: Partial<Delivery> = {}): Delivery {
    const id = `${name}-${++this.ids}`;
    const object = { apiVersion: "v1", kind: "ConfigMap", namespace: "team-a", name: "settings", uid: "u1" };
    return {
      function: name,
      trigger: "settings",
      id,
      type: "Modified",
      object,
      resourceVersion: "7",
      attempt: 1,
      redelivered: false,
      flags: {},
      body: Buffer.from(JSON.stringify({ kind: "ConfigMap", metadata: { name: "settings" }, data: { n: "1" } })),
      timeoutMs: 5000,
      ...over,
    };
  }

  run(name: string, over: Partial<Delivery> = {}) {
    return run(this.sandbox, this.delivery(name, over));
  }

  /** Runs a function's event until an executor has died of it once more. Returns the event's outcome. */
  async runToDeath(name: string) {
    const kills = this.sandbox.status(name)?.kills ?? 0;
    const outcome = await this.run(name, { timeoutMs: 30_000 });
    await expect.poll(() => this.sandbox.status(name)?.kills, { timeout: 10_000 }).toBe(kills + 1);
    return outcome;
  }

  async close(): Promise<void> {
    await this.sandbox.close(0);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A fixture that is closed at the end of the test. */
export function fixtureForTest(options?: Partial<SandboxOptions>): SandboxFixture {
  const fixture = new SandboxFixture(options);
  onTestFinished(() => fixture.close());
  return fixture;
}
