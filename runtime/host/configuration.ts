import { statfsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { getHeapStatistics } from "node:v8";
import { runtimeAccount } from "../access/account.ts";
import { version } from "../base/version.ts";
import { withoutSecrets } from "../control/record/redaction.ts";
import { filesOf, type SupportReport } from "../observe/support-report.ts";
import { installedIsolatedVm } from "../sandbox/requirements.ts";
import { cacheLimit, executorLimit, type RuntimeOptions } from "./components.ts";

/** The options and limits of a runtime, for people: without secrets, and without the values of variables. */
interface Configuration {
  readonly versions: Readonly<Record<string, string>>;
  /** The command's options as they hold, with their defaults. Empty if it was not started by a command. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** The place where it runs, and its cluster. */
  readonly place: Readonly<Record<string, string>>;
  /** Bounds by name, each with its unit. */
  readonly limits: Readonly<Record<string, { readonly value: number; readonly unit: string }>>;
  /** The data folder's files, and its volume, in bytes. */
  readonly disk: DiskUse;
}

interface DiskUse {
  readonly files: ReturnType<typeof filesOf>;
  readonly size?: number;
  /** As far as the process may use it. */
  readonly free?: number;
}

/** Sizes of the volume are absent if the system does not say. */
function diskUse(folder: string): DiskUse {
  const files = filesOf(folder);
  try {
    const { bsize, blocks, bavail } = statfsSync(folder);
    return { files, size: bsize * blocks, free: bsize * bavail };
  } catch {
    return { files };
  }
}

/** Describes how a runtime was started. `url`: that of its endpoints. */
export function describeConfiguration(options: RuntimeOptions, url: string): Configuration {
  const { transport, namespace, account = runtimeAccount, store = "sqlite", data, functions, slots, history } = options;
  const bytes = (value: number) => ({ value, unit: "bytes" });
  return withoutSecrets({
    versions: {
      watchfire: version,
      node: process.versions.node,
      v8: process.versions.v8,
      "isolated-vm": installedIsolatedVm(),
    },
    flags: options.flags ?? {},
    place: {
      cluster: transport.description,
      namespace,
      account,
      store,
      data,
      endpoints: url,
      ...(functions !== undefined && { functions }),
      platform: `${process.platform} ${process.arch}`,
    },
    limits: {
      heap: bytes(getHeapStatistics().heap_size_limit),
      cores: { value: availableParallelism(), unit: "cores" },
      executors: { value: Math.min(availableParallelism(), executorLimit), unit: "processes" },
      cache: bytes(options.cacheLimit ?? cacheLimit),
      ...(slots !== undefined && { slots: { value: slots, unit: "slots" } }),
      history: bytes(history?.bytes ?? 0),
      "history age": { value: (history?.ageMs ?? 0) / 1000, unit: "seconds" },
    },
    disk: diskUse(data),
  }) as Configuration;
}

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
