import { z } from "zod";

/**
 * Rights of executors as operating-system processes, as their starter found them on its platform. `/status` shows them under
 * `sandbox.rights`.
 */
export const rightsSchema = z.strictObject({
  /** `separate`: each executor runs as a different user, and the starter as another one. */
  user: z.enum(["separate", "same"]),
  /** `own`: the starter is process 1 of its process namespace. When it ends, the kernel kills all other processes in it. */
  pidNamespace: z.enum(["own", "shared"]),
  /** `sealed`: no process of the same user may read, trace or take descriptors of the starter or an executor. */
  memory: z.enum(["sealed", "readable"]),
  /** `none`: a program started by an executor cannot gain more rights than the executor has. */
  newPrivileges: z.enum(["none", "possible"]),
  /** How an executor ends if its starter was killed, even when it is stuck: by the kernel, or by a thread that watches a pipe. */
  endsWithStarter: z.enum(["kernel", "thread"]),
  /** An executor's niceness, 0 to 19. */
  nice: z.int().min(-20).max(19),
  /** The `oom_score_adj` that an executor is set to; `null` if it keeps its starter's. */
  oomScoreAdj: z.int().nullable(),
  /** Node's permission model: an executor can read only its own code, and starts no program. */
  permissionModel: z.literal(true),
  /** False with `--jitless`: V8 compiles no machine code. */
  jit: z.boolean(),
  /** For executors in a separate container: whether they can replace the socket in the folder shared with the parent. */
  socketFolder: z.enum(["read-only", "writable"]).optional(),
});
export type ExecutorRights = z.infer<typeof rightsSchema>;

/**
 * Whether no process of an executor can outlive its starter or impersonate it, so that the next connection is from a new starter.
 */
export const isIsolated = ({ user, pidNamespace, memory }: ExecutorRights): boolean =>
  user === "separate" || (pidNamespace === "own" && memory === "sealed");

/** Describes missing restrictions, for a person. Empty if nothing is missing. */
export function missingRights(rights: ExecutorRights): string[] {
  const missing: string[] = [];
  if (rights.user === "same" && rights.memory === "readable")
    missing.push("executors run as the user of their starter, and can read its memory");
  if (!isIsolated(rights) && rights.socketFolder)
    missing.push("processes that an executor starts can outlive its supervisor");
  if (rights.socketFolder === "writable")
    missing.push("executors can replace the socket: mount its folder read-only there");
  if (rights.newPrivileges === "possible") missing.push("executors can start setuid programs");
  return missing;
}
