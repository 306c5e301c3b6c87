import { z } from "zod";

/** `WATCHFIRE_LOG_LEVEL`'s values: pino's names. */
export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

const schema = z.object({
  /** The namespace of the runtime's pod, by the downward API. */
  POD_NAMESPACE: z.string().optional(),
  WATCHFIRE_LOG_LEVEL: z.enum(logLevels).default("info"),
  /** Set by the launcher: a descriptor that closes when the launcher dies. */
  WATCHFIRE_LAUNCHER_FD: z.coerce.number().int().min(3).optional(),
});

/** What the runtime takes from its environment. Everything else comes by flag or file. */
export interface Environment {
  /** All of it, for credential plugins that are started with it. */
  readonly variables: Readonly<NodeJS.ProcessEnv>;
  readonly podNamespace: string | undefined;
  readonly logLevel: LogLevel;
  readonly launcherFd: number | undefined;
}

/**
 * Reads the environment; the only place that does. An empty variable counts as unset.
 * @throws ZodError naming the variable whose value cannot be used
 */
export function readEnvironment(variables: NodeJS.ProcessEnv = process.env): Environment {
  const set = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ""));
  const env = schema.parse(set);
  return Object.freeze({
    variables: Object.freeze(set),
    podNamespace: env.POD_NAMESPACE,
    logLevel: env.WATCHFIRE_LOG_LEVEL,
    launcherFd: env.WATCHFIRE_LAUNCHER_FD,
  });
}
