import type { ResolvedEnv } from "../access/env.ts";
import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { CanaryOffer } from "../catalog/function-source.ts";
import { AbortedCanaries } from "../control/aborted-canaries.ts";
import type { AbortRule } from "../manifest/function.ts";
import type { Logger } from "../observe/log.ts";
import { CanaryRoute, type CanaryState } from "../sandbox/host/canary-route.ts";
import type { ActiveComponents } from "./components.ts";

/** The rule of a manifest without `canary`. */
const defaultRule: AbortRule = { failureRate: 0.05, minRuns: 20 };

export interface LiveCanaryParts extends Pick<ActiveComponents, "canaryAborted"> {
  readonly redactor: Pick<ActiveComponents["redactor"], "redact">;
  readonly sandbox: Pick<ActiveComponents["sandbox"], "load" | "divide" | "unite">;
  readonly store: ConstructorParameters<typeof AbortedCanaries>[0];
  readonly clock: Clock;
  readonly log: Pick<Logger, "error" | "info" | "warn">;
}

/** A canary that was offered. */
interface Following {
  readonly offer: CanaryOffer;
  readonly instance: string;
  readonly route: CanaryRoute;
}

/** The canary of a live function: its code is loaded in addition to the current code, and gets its share of the keys. */
export class LiveCanary {
  private readonly name: string;
  private readonly instance: string;
  private readonly parts: LiveCanaryParts;
  private readonly aborted: AbortedCanaries;
  private now: Following | undefined;

  /** @param instance the sandbox's instance of the current code */
  constructor(name: string, instance: string, parts: LiveCanaryParts) {
    this.name = name;
    this.instance = instance;
    this.parts = parts;
    this.aborted = new AbortedCanaries(parts.store);
  }

  get state(): CanaryState | undefined {
    return this.now?.route.state;
  }

  /**
   * Loads the offered canary, unless it was aborted, and ends the one before. `undefined`: there is no canary. One that cannot be
   * loaded is aborted.
   */
  async follow(offer: CanaryOffer | undefined, concurrency: number, env: ResolvedEnv["values"]): Promise<void> {
    if (offer?.id === this.now?.offer.id) return;
    await this.leave();
    await this.aborted.forget(this.name, offer?.id).catch((error: unknown) => this.notRecorded(error));
    if (!offer) return;
    const { id, share, salt, manifest } = offer;
    const route = new CanaryRoute({
      ...{ id, share, salt, concurrency, clock: this.parts.clock },
      rule: manifest.canary?.abortWhen ?? defaultRule,
      aborted: (reason) => this.abort(id, reason),
    });
    const following = { offer, instance: `${this.instance}~${id}`, route };
    this.now = following;
    const at = await this.aborted.at(this.name, id);
    if (at !== undefined) {
      route.abort(`it was aborted at ${new Date(at).toISOString()}`);
      return;
    }
    try {
      await this.load(following, env);
      this.parts.sandbox.divide(this.instance, following.instance, route);
      this.parts.log.info({ function: this.name, share }, "canary loaded");
    } catch (error) {
      const reason = `it cannot be loaded: ${error instanceof Error ? error.message : String(error)}`;
      route.abort(reason);
      this.abort(id, reason);
    }
  }

  /** Loads it again, with changed values. */
  async refresh(env: ResolvedEnv["values"]): Promise<void> {
    if (this.now && this.now.route.state.aborted === undefined) await this.load(this.now, env);
  }

  /** Ends the canary here. Resolves once it has no attempt any more. */
  async leave(): Promise<void> {
    const { now } = this;
    this.now = undefined;
    if (now) await this.parts.sandbox.unite(this.instance, now.instance, now.route);
  }

  private async load({ offer, instance }: Following, env: ResolvedEnv["values"]): Promise<void> {
    await this.parts.sandbox.load(offer.manifest, await offer.bundle(), env, instance);
  }

  private abort(id: string, unredacted: string): void {
    const { clock, log, redactor, canaryAborted } = this.parts;
    const reason = redactor.redact(this.name, unredacted);
    log.error({ function: this.name, reason }, "canary aborted, the current code gets all keys");
    canaryAborted(this.name, reason);
    void this.aborted.add(this.name, id, clock.now()).catch((error: unknown) => this.notRecorded(error));
  }

  private notRecorded(error: unknown): void {
    const message = error instanceof WatchfireError ? error.message : String(error);
    this.parts.log.warn({ function: this.name, error: message }, "end of a canary not recorded");
  }
}
