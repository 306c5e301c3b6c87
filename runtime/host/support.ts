import type { SupportReport } from "../observe/support-report.ts";
import type { RuntimeOptions } from "./components.ts";

/** Returns the settings of a runtime for its support report: each by name, so that no new one is included unseen. */
export function settingsOf(options: RuntimeOptions): SupportReport["options"] {
  const { functions, data, namespace, account, reserved, deployed, trust, election, store, slots, nats } = options;
  const { functionStatus, listen, console, executorSocket, jitless, cacheLimit, history, localEnv, dryRun } = options;
  return {
    cluster: options.transport.description,
    functions,
    data,
    namespace,
    account,
    identity: options.accounts ? "function" : "runtime",
    reserved,
    deployed,
    isSigned: trust !== undefined,
    election: election?.identity,
    store: store ?? "sqlite",
    slots,
    // Neither credentials nor keys: their files.
    nats: nats && { servers: nats.servers, isTls: nats.tls !== undefined, replicas: nats.replicas },
    functionStatus,
    listen,
    console,
    executorSocket,
    jitless,
    cacheLimit,
    history,
    hasLocalEnv: localEnv !== undefined,
    dryRun,
    logLevel: options.log.level,
  };
}
