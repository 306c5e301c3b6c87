import { createKube } from "../../../sdk/client.ts";
import type { Context, Events, Log, Metrics } from "../../../sdk/index.ts";
import type { Kube } from "../../../sdk/kube.ts";
import type { Call } from "../../../sdk/operations.ts";
import { AbortController, DOMException } from "./abort.guest.ts";
import { createFetch } from "./fetch.guest.ts";
import { createLog, createMetrics } from "./log.guest.ts";
import { PrimordialPromise, random } from "./primordials.guest.ts";
import { callHost, type Run } from "./run.guest.ts";
import { setTimeout } from "./timers.guest.ts";

const pause = (delayMs: number): Promise<void> =>
  new PrimordialPromise((resolve) => {
    setTimeout(resolve, delayMs);
  });

let env: Readonly<Record<string, string>> = {};

/** Sets `ctx.env`, once, when the function is loaded. */
export function setEnv(values: Record<string, string>): void {
  env = Object.freeze(values);
}

/** What a handler works with. Its parts are made when first asked for: most handlers use one or two. */
export class RunContext implements Context {
  #run: Run;
  #kube: Kube | undefined;
  #log: Log | undefined;
  #metrics: Metrics | undefined;

  constructor(run: Run) {
    this.#run = run;
  }

  #call: Call = (operation, args) => callHost(this.#run, operation, args) as never;

  get kube(): Kube {
    this.#kube ??= createKube({ call: this.#call, pause, random });
    return this.#kube;
  }

  get log(): Log {
    this.#log ??= createLog(this.#run);
    return this.#log;
  }

  get metrics(): Metrics {
    this.#metrics ??= createMetrics(this.#run);
    return this.#metrics;
  }

  get env(): Readonly<Record<string, string>> {
    return env;
  }

  get events(): Events {
    const call = this.#call;
    return {
      async emit(object, { type, reason, message }) {
        const { apiVersion, kind, metadata } = object;
        const { name, namespace, uid, resourceVersion } = metadata ?? {};
        await call("events.emit", {
          object: { apiVersion, kind, name: name ?? "", namespace, uid, resourceVersion } as never,
          type,
          reason,
          message,
        });
      },
    };
  }

  get fetch(): Context["fetch"] {
    return createFetch(this.#call);
  }

  get signal(): AbortSignal {
    const run = this.#run;
    if (!run.controller) {
      run.controller = new AbortController();
      if (run.aborted) run.controller.abort(new DOMException("the event's time is over", "TimeoutError"));
    }
    return run.controller.signal as unknown as AbortSignal;
  }
}
