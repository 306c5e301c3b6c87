import { placeOfFunction } from "../access/account.ts";
import type { FunctionAccounts } from "../access/function-accounts.ts";
import { type Clock, pause } from "../base/clock.ts";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import { ownRules } from "../kube/access-review.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { KnownKinds } from "./kinds.ts";
import { describeNeed, missingNeeds } from "./missing.ts";
import { absentNamespaces } from "./namespaces.ts";
import { knownRules, seenRules } from "./rules.ts";
import { type Need, needsOf } from "./scoped-rule.ts";

/**
 * Interval between two rounds, in milliseconds. A function without its rights must report it within 20 s, and run within 30 s of
 * the grant. An API server accepts the token of a deleted account for 10 s (`pkg/kubeapiserver/options/authentication.go`,
 * TokenSuccessCacheTTL).
 */
const everyMs = 8_000;
/**
 * Shortest time between two checks of one function after refused calls, in milliseconds. A refusal is checked at once, but a
 * thousand refusals must not cause a thousand checks.
 */
const suspicionMs = 1_000;
/**
 * How long a function of a shared runtime's set may see what it sees without an answer that it still may, in milliseconds. Its
 * questions may be refused while the runtime's watches continue, for example because it makes too many requests itself.
 */
const unconfirmedMs = 60_000;
/**
 * Most namespaces that the rights of a function of a shared runtime's set may be in: each is a request in every round. As many as a
 * manifest may name watches.
 */
const mostNamespaces = 200;
/** Functions checked concurrently, so that one slow answer does not delay the round. */
const atOnce = 4;
/** Most missing rights that a message lists. */
const shown = 3;

interface GrantWatchParts {
  /** The runtime's own connection, used to read namespaces. */
  readonly transport: KubeTransport;
  readonly accounts: Pick<FunctionAccounts, "transport" | "namespaceOf">;
  /** The running functions by name; read at each check. */
  readonly functions: { keys(): IterableIterator<string>; get(name: string): FunctionManifest | undefined };
  /** Returns the known kinds of a function's triggers: Events about their objects are written to the same namespace. */
  readonly kinds: (of: FunctionManifest) => Promise<KnownKinds>;
  readonly clock: Clock;
  /** Called when a function begins to lack a right at the API server, when that changes, and when it lacks nothing more. */
  readonly changed: (functionName: string, fault: WatchfireError | undefined) => void;
  /**
   * Called when the account of a function of another namespace's set lacks a right, or was not confirmed for a minute. The function
   * must be unsubscribed, and be checked by `assert` before it is subscribed again.
   */
  readonly excluded: (functionName: string, fault: WatchfireError) => void;
  /** Called when the set of missing namespaces of a function changes; the function continues in the others. */
  readonly absent: (functionName: string, namespaces: readonly string[]) => void;
}

/**
 * Checks for every function whether its account exists and has what `watchfire rbac` grants it: its permissions, what its `env`
 * names, Events and, for a function of another namespace's set, everything that the runtime lists and watches for it. It asks the
 * API server with the function's own token, every 8 s and after a refused call.
 */
export class GrantWatch {
  private readonly parts: GrantWatchParts;
  private readonly faults = new Map<string, WatchfireError>();
  /** Missing namespaces of a function at the last check, separated by commas. */
  private readonly absent = new Map<string, string>();
  /** When a suspicion was last checked, on the monotonic clock. */
  private readonly suspectedAt = new Map<string, number>();
  /** When a function of another namespace's set was last found to have all rights, on the monotonic clock. */
  private readonly confirmedAt = new Map<string, number>();
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;

  constructor(parts: GrantWatchParts) {
    this.parts = parts;
    this.running = this.run(this.stopping.signal);
  }

  /** Returns what the function lacks, as of the last check. */
  fault(functionName: string): WatchfireError | undefined {
    return this.faults.get(functionName);
  }

  /** Checks a function that is not running yet. @throws WatchfireError WF_KUBE_FORBIDDEN, or what the transport throws */
  async assert(manifest: FunctionManifest, signal: AbortSignal): Promise<void> {
    const fault = await this.look(manifest, signal);
    if (fault) throw fault;
  }

  /** Reports that the API server refused a call of this function, which is then checked ahead of its turn. */
  suspect(functionName: string): void {
    const now = this.parts.clock.monotonic();
    const before = this.suspectedAt.get(functionName) ?? Number.NEGATIVE_INFINITY;
    if (now - before < suspicionMs) return;
    this.suspectedAt.set(functionName, now);
    void this.judge(functionName, this.stopping.signal);
  }

  /** Forgets a removed function. If it returns, it is checked before it runs. */
  forget(functionName: string): void {
    this.suspectedAt.delete(functionName);
    this.absent.delete(functionName);
    this.confirmedAt.delete(functionName);
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
      // Without an answer, the last result stays.
      fault = this.unconfirmed(manifest);
      if (!fault) return;
    }
    if (signal.aborted || this.parts.functions.get(name) !== manifest) return;
    if (isShared(manifest)) {
      if (fault) this.parts.excluded(name, fault);
      return;
    }
    if (fault?.message === this.faults.get(name)?.message) return;
    if (fault) this.faults.set(name, fault);
    else this.faults.delete(name);
    this.parts.changed(name, fault);
  }

  /** Returns why a function of another namespace's set counts as forbidden, if nothing confirmed its rights for long. */
  private unconfirmed(manifest: FunctionManifest): WatchfireError | undefined {
    const age = this.parts.clock.monotonic() - (this.confirmedAt.get(manifest.name) ?? Number.NEGATIVE_INFINITY);
    if (!isShared(manifest) || age < unconfirmedMs) return undefined;
    return unentitled(manifest, `the rights of the account of ${manifest.name} were not confirmed for a minute`);
  }

  private async look(manifest: FunctionManifest, signal: AbortSignal): Promise<WatchfireError | undefined> {
    const { accounts, kinds, clock } = this.parts;
    const { name } = manifest;
    const transport = accounts.transport(name);
    const namespace = accounts.namespaceOf(name);
    const shared = isShared(manifest);
    const at = clock.monotonic();
    try {
      const known = await kinds(manifest);
      const seen = shared ? seenRules(manifest, known) : [];
      const needs = needsOf([...knownRules(manifest, known, { namespace }), ...seen]);
      // An account without needs must exist all the same.
      if (needs.length === 0) await ownRules(transport, namespace, signal);
      const places = new Set(needs.map((need) => need.namespace)).size;
      if (shared && places > mostNamespaces) {
        const what = `the rights of ${name} are in ${places} namespaces; expected at most ${mostNamespaces}`;
        return unentitled(manifest, what);
      }
      const before = () => {
        if (clock.monotonic() - at >= unconfirmedMs) throw new Error("the answers take too long");
      };
      const lacking = await missingNeeds(transport, needs, signal, shared ? { missing: shown, before } : undefined);
      // In a shared runtime, a namespace that is missing may be created by others, who then decide what the function sees there.
      const missing = shared ? lacking : await this.inPresentNamespaces(manifest, lacking, signal);
      if (missing.length === 0) {
        if (shared) this.confirmedAt.set(name, at);
        return undefined;
      }
      const more = missing.length > shown ? `, and ${missing.length - shown} more` : "";
      const what = `the account of ${manifest.name} may not ${missing.slice(0, shown).map(describeNeed).join(", nor ")}${more}`;
      if (shared) return unentitled(manifest, what);
      return new WatchfireError("WF_KUBE_FORBIDDEN", { what, place: { file: manifest.file } });
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      if (shared && ofAccount.has(error.code)) return unentitled(manifest, error.detail.what);
      if (error.code === "WF_KUBE_FORBIDDEN") return error;
      throw error;
    }
  }

  /**
   * Restricts needs to namespaces that exist, since nothing can be granted in others. A missing namespace that the function only
   * watches does not stop it: nothing happens there. A function that only writes there waits, because each of its events would
   * fail.
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

/** Whether a function's set is in another namespace than the runtime. */
const isShared = ({ name }: FunctionManifest): boolean => placeOfFunction(name).namespace !== undefined;

/** Errors that say that the account may not see what the function asks for, or that nothing says which resource that is. */
const ofAccount: ReadonlySet<ErrorCode> = new Set(["WF_KUBE_FORBIDDEN", "WF_RBAC_UNKNOWN_KIND"]);

const unentitled = ({ file }: FunctionManifest, what: string): WatchfireError =>
  new WatchfireError("WF_DEPLOYED_FORBIDDEN", { what, place: { file } });
