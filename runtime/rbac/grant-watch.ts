import type { FunctionAccounts } from "../access/function-accounts.ts";
import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { ownRules } from "../kube/access-review.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { KnownKinds } from "./kinds.ts";
import { describeNeed, missingNeeds } from "./missing.ts";
import { absentNamespaces } from "./namespaces.ts";
import { knownRules } from "./rules.ts";
import { type Need, needsOf } from "./scoped-rule.ts";

/**
 * A function that may not do what it must is to say so within 20 s, and to run within 30 s of its grant. An API server
 * believes the token of an account that is gone for 10 s (`pkg/kubeapiserver/options/authentication.go`, TokenSuccessCacheTTL).
 */
const everyMs = 8_000;
/** A refusal that a call met is looked into at once, but a function that makes a thousand asks for no thousand looks. */
const suspicionMs = 1_000;
/** Functions that are looked at at once: one whose answer is late holds up no round. */
const atOnce = 4;
/** How much of what is missing is said. */
const shown = 3;

interface GrantWatchParts {
  /** The runtime's own connection, which looks at namespaces. */
  readonly transport: KubeTransport;
  readonly accounts: Pick<FunctionAccounts, "transport" | "namespace">;
  /** The functions that run, by name; read at each look. */
  readonly functions: { keys(): IterableIterator<string>; get(name: string): FunctionManifest | undefined };
  /** What is known of the kinds of a function's triggers: Events about their objects lie beside these. */
  readonly kinds: (of: FunctionManifest) => Promise<KnownKinds>;
  readonly clock: Clock;
  /** Told when a function begins to lack something at the API server, when that changes, and when it lacks nothing more. */
  readonly changed: (functionName: string, fault: WatchfireError | undefined) => void;
  /** Told when other namespaces than before are not there for a function, which goes on in the rest. */
  readonly absent: (functionName: string, namespaces: readonly string[]) => void;
}

/**
 * Knows of every function whether its account is there and has what `watchfire rbac` grants it: its permissions, what its
 * `env` names, and Events. It asks the API server with the function's own token, each 8 s and when a call was refused there.
 */
export class GrantWatch {
  private readonly parts: GrantWatchParts;
  private readonly faults = new Map<string, WatchfireError>();
  /** Namespaces that were not there for a function at the last look, with commas between. */
  private readonly absent = new Map<string, string>();
  /** When a suspicion was last looked into, on the monotonic clock. */
  private readonly suspectedAt = new Map<string, number>();
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;

  constructor(parts: GrantWatchParts) {
    this.parts = parts;
    this.running = this.run(this.stopping.signal);
  }

  /** What the function lacks, as of the last look. */
  fault(functionName: string): WatchfireError | undefined {
    return this.faults.get(functionName);
  }

  /** Looks at a function that does not run yet. @throws WatchfireError WF_KUBE_FORBIDDEN, or what the transport throws */
  async assert(manifest: FunctionManifest, signal: AbortSignal): Promise<void> {
    const fault = await this.look(manifest, signal);
    if (fault) throw fault;
  }

  /** The API server refused a call of this function: it is looked at without waiting for its turn. */
  suspect(functionName: string): void {
    const now = this.parts.clock.monotonic();
    const before = this.suspectedAt.get(functionName) ?? Number.NEGATIVE_INFINITY;
    if (now - before < suspicionMs) return;
    this.suspectedAt.set(functionName, now);
    void this.judge(functionName, this.stopping.signal);
  }

  /** The function is gone. Should it come back, it is looked at before it runs. */
  forget(functionName: string): void {
    this.suspectedAt.delete(functionName);
    this.absent.delete(functionName);
    if (this.faults.delete(functionName)) this.parts.changed(functionName, undefined);
  }

  async close(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(signal: AbortSignal): Promise<void> {
    const { clock, functions } = this.parts;
    while (!signal.aborted) {
      await pause(clock, everyMs, signal).catch(() => undefined);
      const names = functions.keys();
      const look = async () => {
        for (const name of names) await this.judge(name, signal);
      };
      await Promise.all(Array.from({ length: atOnce }, look));
    }
  }

  private async judge(name: string, signal: AbortSignal): Promise<void> {
    const manifest = this.parts.functions.get(name);
    if (!manifest || signal.aborted) return;
    let fault: WatchfireError | undefined;
    try {
      fault = await this.look(manifest, signal);
    } catch {
      return; // nobody answers: what was known last stays
    }
    if (signal.aborted || this.parts.functions.get(name) !== manifest) return;
    if (fault?.message === this.faults.get(name)?.message) return;
    if (fault) this.faults.set(name, fault);
    else this.faults.delete(name);
    this.parts.changed(name, fault);
  }

  private async look(manifest: FunctionManifest, signal: AbortSignal): Promise<WatchfireError | undefined> {
    const { accounts, kinds } = this.parts;
    const transport = accounts.transport(manifest.name);
    try {
      const needs = needsOf(knownRules(manifest, await kinds(manifest), accounts));
      // An account that needs nothing must be there all the same.
      if (needs.length === 0) await ownRules(transport, accounts.namespace, signal);
      const lacking = await missingNeeds(transport, needs, signal);
      const missing = await this.inPresentNamespaces(manifest, lacking, signal);
      if (missing.length === 0) return undefined;
      const more = missing.length > shown ? `, and ${missing.length - shown} more` : "";
      const what = `the account of ${manifest.name} may not ${missing.slice(0, shown).map(describeNeed).join(", nor ")}${more}`;
      return new WatchfireError("WF_KUBE_FORBIDDEN", { what, place: { file: manifest.file } });
    } catch (error) {
      if (error instanceof WatchfireError && error.code === "WF_KUBE_FORBIDDEN") return error;
      throw error;
    }
  }

  /**
   * Nothing can be granted in a namespace that is not there. Where the function watches it, nothing is done in it any more:
   * that holds up no function. One that only writes there waits, since each of its events would fail.
   */
  private async inPresentNamespaces(
    { name, triggers }: FunctionManifest,
    needs: readonly Need[],
    signal: AbortSignal,
  ): Promise<Need[]> {
    const watched = triggers.flatMap(({ namespaces }) => (namespaces.type === "names" ? namespaces.names : []));
    const named = new Set(needs.flatMap(({ namespace }) => namespace ?? []).filter((each) => watched.includes(each)));
    const absent = await absentNamespaces(this.parts.transport, named, signal);
    const all = [...absent].sort();
    if (all.join() !== (this.absent.get(name) ?? "") && !signal.aborted) {
      this.absent.set(name, all.join());
      this.parts.absent(name, all);
    }
    return needs.filter(({ namespace }) => namespace === undefined || !absent.has(namespace));
  }
}
