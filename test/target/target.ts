import type { Access } from "./client.ts";
import type { Recipe } from "./recipe.ts";

/** A cluster under test, whichever it is. */
export interface Target {
  /** Its administrator's access. */
  readonly access: Access;
  /** Whether somebody removes owned objects and empties deleted namespaces, as a controller-manager does. */
  readonly controllers: boolean;
  /** Path of the log with one JSON line for each request of a ServiceAccount. The embedded cluster has no such log. */
  readonly auditLog?: string;
}

/** A cluster of the test's own, which it may disturb. */
export interface OwnTarget extends Target {
  /** Forgets all history up to now, on disk and in every cache; returns when the API serves again. */
  compact(): Promise<void>;
  /** Stops the API server and starts it again on the same port with the same data; watches end. */
  restart(): Promise<void>;
  /** Copies everything that it stores, for `rewind`; watches go on. */
  backUp(): Promise<void>;
  /** Stops, puts the last copy back by that recipe (default: the first of its kind), and starts on the same port. */
  rewind(recipe?: Recipe): Promise<void>;
  /** Ends its processes and removes its files. */
  close(): Promise<void>;
}

/** Which kind of cluster a vitest project runs on. */
export type TargetName = "embedded" | "real";

/**
 * Starts a cluster of the project's kind, or returns the reason why that is not possible.
 * @param gates features of a real API server that are off by default
 */
export async function startTarget(name: TargetName, gates: readonly string[] = []): Promise<OwnTarget> {
  if (name === "embedded") return (await import("./embedded-target.ts")).start();
  return (await import("./real-target.ts")).start(gates);
}
