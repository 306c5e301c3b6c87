import { type ResolvedEnv, resolveEnv } from "../access/env.ts";
import type { FunctionAccounts } from "../access/function-accounts.ts";
import type { OwnObjects } from "../access/own-objects.ts";
import { type Clock, pause, type Random } from "../base/clock.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { GrantWatch } from "../rbac/grant-watch.ts";

/** A Secret that `env` names may be made at any time; a pod that lacks one is tried as often by the kubelet. */
const envRetryMs = 10_000;

/**
 * Between two looks at the objects of `env`: 15 to 25 s. So a change is taken up within 30 s, and not by all functions
 * at once.
 */
const envFollowMs = 15_000;
const envSpreadMs = 10_000;

export interface FunctionEnvParts {
  readonly transport: KubeTransport;
  readonly accounts?: FunctionAccounts | undefined;
  /** Where references are read. */
  readonly namespace: string;
  readonly own: OwnObjects;
  /** What its account lacks; undefined where functions have no accounts of their own. */
  readonly grants: GrantWatch | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/** The environment of one function, whose references lead into the cluster. */
export class FunctionEnv {
  private readonly name: string;
  private readonly parts: FunctionEnvParts;

  /** @param name the function's */
  constructor(name: string, parts: FunctionEnvParts) {
    this.name = name;
    this.parts = parts;
  }

  /** @throws WatchfireError WF_ACCESS_ENV */
  read(manifest: FunctionManifest, signal: AbortSignal): Promise<ResolvedEnv> {
    const { namespace, accounts, own } = this.parts;
    const transport = accounts?.transport(this.name) ?? this.parts.transport;
    return resolveEnv(manifest, { transport, namespace, own }, signal);
  }

  /**
   * Waits for what is not there yet: its accounts' rights, and what it refers to. `lacking` is told why, at each try.
   * Undefined: the signal aborted first.
   */
  async awaited(
    manifest: FunctionManifest,
    signal: AbortSignal,
    lacking: (error: unknown) => void,
  ): Promise<ResolvedEnv | undefined> {
    for (;;) {
      try {
        await this.parts.grants?.assert(manifest, signal);
        const env = await this.read(manifest, signal);
        return signal.aborted ? undefined : env;
      } catch (error) {
        if (signal.aborted) return undefined;
        lacking(error);
      }
      await pause(this.parts.clock, envRetryMs, signal).catch(() => undefined);
      if (signal.aborted) return undefined;
    }
  }

  /** Looks again and again at what it refers to, until the signal aborts. Where it refers to nothing, never. */
  async follow(manifest: FunctionManifest, signal: AbortSignal, look: () => Promise<void>): Promise<void> {
    const { clock, random } = this.parts;
    const refers = manifest.env.some(({ secretKeyRef, configMapKeyRef }) => secretKeyRef ?? configMapKeyRef);
    while (refers && !signal.aborted) {
      await pause(clock, envFollowMs + random() * envSpreadMs, signal).catch(() => undefined);
      await look();
    }
  }
}
