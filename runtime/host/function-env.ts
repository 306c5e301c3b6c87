import { type LocalEnv, type ResolvedEnv, resolveEnv } from "../access/env.ts";
import type { FunctionAccounts } from "../access/function-accounts.ts";
import type { OwnObjects } from "../access/own-objects.ts";
import { type Clock, pause, type Random } from "../base/clock.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { GrantWatch } from "../rbac/grant-watch.ts";

/**
 * Interval at which a missing object in `env` is read again, in milliseconds. It may be created at any time; the kubelet retries
 * a pod at the same interval.
 */
const envRetryMs = 10_000;

/**
 * Interval between two reads of the objects in `env`: 15 to 25 s, in milliseconds. Changes are used within 30 s, and not by all
 * functions at once.
 */
const envFollowMs = 15_000;
const envSpreadMs = 10_000;

export interface FunctionEnvParts {
  readonly transport: KubeTransport;
  readonly accounts?: FunctionAccounts | undefined;
  /** The namespace of references, of functions of the runtime's own namespace. */
  readonly namespace: string;
  readonly own: OwnObjects;
  readonly localEnv?: LocalEnv | undefined;
  /** The rights that the function's account lacks. `undefined` if functions have no accounts. */
  readonly grants: GrantWatch | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/** The environment of one function, which may refer to objects in the cluster. */
export class FunctionEnv {
  private readonly name: string;
  private readonly parts: FunctionEnvParts;

  /** @param name of the function */
  constructor(name: string, parts: FunctionEnvParts) {
    this.name = name;
    this.parts = parts;
  }

  /** @throws WatchfireError WF_ACCESS_ENV */
  read(manifest: FunctionManifest, signal: AbortSignal): Promise<ResolvedEnv> {
    const { accounts, own, localEnv } = this.parts;
    const namespace = accounts?.namespaceOf(this.name) ?? this.parts.namespace;
    const transport = accounts?.transport(this.name) ?? this.parts.transport;
    return resolveEnv(manifest, { transport, namespace, own, localEnv }, signal);
  }

  /**
   * Waits for everything that is missing: rights of the account, and the objects it refers to. `lacking` is called with the
   * reason at each attempt. Returns `undefined` if the signal aborts first.
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

  /** Calls `look` periodically until the signal aborts. Never, if the environment refers to no objects. */
  async follow(manifest: FunctionManifest, signal: AbortSignal, look: () => Promise<void>): Promise<void> {
    const { clock, random } = this.parts;
    const refers = manifest.env.some(({ secretKeyRef, configMapKeyRef }) => secretKeyRef ?? configMapKeyRef);
    while (refers && !signal.aborted) {
      await pause(clock, envFollowMs + random() * envSpreadMs, signal).catch(() => undefined);
      await look();
    }
  }
}
