import type { Clock } from "../../base/clock.ts";
import type { Bundle } from "../../bundle/bundle.ts";
import type { FunctionVersion } from "./placement.ts";
import { Sandbox } from "./sandbox.ts";

/** Loads functions in an executor, with their limits, to hear whether they can be; no handler is called. */
export class Trial {
  private readonly sandbox: Sandbox;

  constructor(clock: Clock) {
    this.sandbox = new Sandbox({
      executors: 1,
      // No event is delivered, and nothing is asked or written but on behalf of one.
      hostCalls: { call: async () => ({ ok: false, error: { type: "ForbiddenError", message: "nothing runs yet" } }) },
      output: { log: () => undefined, metric: () => undefined },
      clock,
      log: { info: () => undefined, warn: () => undefined },
    });
    this.sandbox.warm();
  }

  /** @throws WatchfireError with the place in the author's file where the module cannot be loaded */
  async load(manifest: FunctionVersion["manifest"], bundle: Bundle): Promise<void> {
    // There is no secret and no event: one executor does for all trust groups.
    await this.sandbox.load({ ...manifest, trustGroup: undefined }, bundle, {});
    this.sandbox.unload(manifest.name);
  }

  close(): Promise<void> {
    return this.sandbox.close(0);
  }
}
