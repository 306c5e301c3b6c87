import type { Access } from "./client.ts";
import type { Recipe } from "./recipe.ts";

/** A cluster under test, embedded or real. */
export interface Target {
  /** Its administrator's access. */
  readonly access: Access;
  /** True if owned objects are removed and deleted namespaces are emptied, as by a controller-manager. */
  readonly controllers: boolean;
  /** Path of the log with one JSON line for each request of a ServiceAccount. The embedded cluster has no such log. */
  readonly auditLog?: string;
}

/** A cluster that only one test uses and may disturb. */
export interface OwnTarget extends Target {
  /** Drops all history, on disk and in every cache. Resolves when the API serves again. */
  compact(): Promise<void>;
  /** Restarts the API server on the same port with the same data. Watches end. */
  restart(): Promise<void>;
  /** Copies all stored data for `rewind`. Watches continue. */
  backUp(): Promise<void>;
  /** Stops, restores the last copy by that recipe (default: the first of its kind), and starts on the same port. */
  rewind(recipe?: Recipe): Promise<void>;
  /** Ends its processes and removes its files. */
  close(): Promise<void>;
}

/** The kind of cluster of a vitest project. */
export type TargetName = "embedded" | "real";

/**
 * Starts a cluster of the project's kind, or returns the reason why that is not possible.
 * @param gates features of a real API server that are off by default
 */
export async function startTarget(name: TargetName, gates: readonly string[] = []): Promise<OwnTarget> {
  if (name === "embedded") return (await import("./embedded-target.ts")).start();
  return (await import("./real-target.ts")).start(gates);
}
