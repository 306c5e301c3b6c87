import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import type { LogLevel } from "../base/config.ts";

export type { Logger } from "pino";

/**
 * Creates the runtime's logger: JSON lines with constant messages and fields. Credentials that a library's error may contain are
 * redacted.
 */
export function createLog(level: LogLevel, destination: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: ["*.headers.authorization", "*.token", "*.password", "headers.authorization", "token"],
        censor: "[redacted]",
      },
    },
    destination,
  );
}
