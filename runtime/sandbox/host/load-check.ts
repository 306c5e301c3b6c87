import type { Clock } from "../../base/clock.ts";
import type { Bundle } from "../../bundle/bundle.ts";
import type { FunctionVersion } from "./placement.ts";
import { Sandbox } from "./sandbox.ts";

/** Loads functions in an executor, with their limits, to check that they can be loaded. No handler is called. */
export class LoadCheck {
  private readonly sandbox: Sandbox;

  constructor(clock: Clock) {
    this.sandbox = new Sandbox({
      executors: 1,
      // No event is delivered, so no calls are made and nothing is logged.
      hostCalls: { call: async () => ({ ok: false, error: { type: "ForbiddenError", message: "nothing runs yet" } }) },
      output: { log: () => undefined, metric: () => undefined },
      clock,
      log: { info: () => undefined, warn: () => undefined },
    });
    this.sandbox.warm();
  }

  /** @throws WatchfireError with the place in the author's file if the module cannot be loaded */
  async load(manifest: FunctionVersion["manifest"], bundle: Bundle): Promise<void> {
    // Without secrets and events, one executor is enough for all trust groups.
    await this.sandbox.load({ ...manifest, trustGroup: undefined }, bundle, {});
    this.sandbox.unload(manifest.name);
  }

  close(): Promise<void> {
    return this.sandbox.close(0);
  }
}
