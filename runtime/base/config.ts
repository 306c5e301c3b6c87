import { z } from "zod";
import { WatchfireError } from "./errors.ts";
import { readVariables } from "./variables.ts";

/** The values of `WATCHFIRE_LOG_LEVEL`: pino's names. */
export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

const descriptor = "the number of a descriptor, 3 or more";

/** The environment variables. Each error message says which values are allowed. */
const schema = z.object({
  /** The namespace of the runtime's pod, from the downward API. */
  POD_NAMESPACE: z.string().optional(),
  /** The pod's name and uid, from the downward API. They are its identity in the election for the Lease. */
  POD_NAME: z.string().optional(),
  POD_UID: z.string().optional(),
  /** Set by the kubelet in each container of a pod. */
  KUBERNETES_SERVICE_HOST: z.string().optional(),
  /** The data folder if --data is absent. The chart sets it, for commands in the runtime's container. */
  WATCHFIRE_DATA: z.string().optional(),
  /** The target of `watchfire backup` if --to is absent. A URL is a credential, which a command line would show to others. */
  WATCHFIRE_BACKUP_TO: z.string().optional(),
  WATCHFIRE_LOG_LEVEL: z.enum(logLevels, { error: `one of ${logLevels.join(", ")}` }).default("info"),
  /** Set by the launcher: a descriptor that closes when the launcher dies. */
  WATCHFIRE_LAUNCHER_FD: z.coerce
    .number({ error: descriptor })
    .int({ error: descriptor })
    .min(3, { error: descriptor })
    .optional(),
  /** Set by npm, for the commands of `npm run` and `npx`. */
  npm_lifecycle_event: z.string().optional(),
});

/** The runtime's settings from its environment. All other settings are flags or files. */
export interface Environment {
  /** All variables, for credential plugins that are started with them. */
  readonly variables: Readonly<NodeJS.ProcessEnv>;
  readonly podNamespace: string | undefined;
  readonly podName: string | undefined;
  readonly podUid: string | undefined;
  /** Whether the process runs in a container of a pod. */
  readonly isInPod: boolean;
  readonly dataFolder: string | undefined;
  readonly backupTo: string | undefined;
  readonly logLevel: LogLevel;
  readonly launcherFd: number | undefined;
  /** Whether npm started it, for example by `npm start` or `npx`. */
  readonly isStartedByNpm: boolean;
}

/**
 * Reads the runtime's settings from the environment.
 * @throws WatchfireError WF_CLI_ENVIRONMENT with the variable, its value, and the allowed values
 */
export function readEnvironment(variables?: NodeJS.ProcessEnv): Environment {
  const set = readVariables(variables);
  const { data: env, error } = schema.safeParse(set);
  if (!env) throw unusable(set, error);
  return Object.freeze({
    variables: set,
    podNamespace: env.POD_NAMESPACE,
    podName: env.POD_NAME,
    podUid: env.POD_UID,
    isInPod: (env.KUBERNETES_SERVICE_HOST ?? "") !== "",
    dataFolder: env.WATCHFIRE_DATA,
    backupTo: env.WATCHFIRE_BACKUP_TO,
    logLevel: env.WATCHFIRE_LOG_LEVEL,
    launcherFd: env.WATCHFIRE_LAUNCHER_FD,
    isStartedByNpm: env.npm_lifecycle_event !== undefined,
  });
}

/** The error for a variable with a value that cannot be used. */
export function unusable(set: Readonly<NodeJS.ProcessEnv>, { issues: [issue] }: z.ZodError): WatchfireError {
  const name = String(issue?.path[0]);
  return new WatchfireError("WF_CLI_ENVIRONMENT", {
    what: `the environment variable ${name} has a value that cannot be used`,
    actual: set[name],
    hint: `set it to ${issue?.message}, or unset it`,
  });
}
