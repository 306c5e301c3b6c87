import { z } from "zod";

/**
 * What executors may do beyond what their handlers do: what the platform gives, as their starter found it. `/status` shows it
 * under `sandbox.rights`.
 */
export const rightsSchema = z.strictObject({
  /** `separate`: each executor runs as a user of its own, and its starter as another. */
  user: z.enum(["separate", "same"]),
  /** `own`: the starter is process 1 of its process namespace. The kernel ends all others there when it ends. */
  pidNamespace: z.enum(["own", "shared"]),
  /** `sealed`: no process of the same user may read, trace or take descriptors of the starter or an executor. */
  memory: z.enum(["sealed", "readable"]),
  /** `none`: no program that an executor starts gets more rights than it has. */
  newPrivileges: z.enum(["none", "possible"]),
  /** How an executor ends whose starter was killed, though it is stuck: by the kernel, or by a thread that watches a pipe. */
  endsWithStarter: z.enum(["kernel", "thread"]),
  /** An executor's niceness, 0 to 19. */
  nice: z.int().min(-20).max(19),
  /** What an executor's badness for the kernel's OOM killer is raised to; null where it is the starter's. */
  oomScoreAdj: z.int().nullable(),
  /** Node's permission model: an executor reads its own code alone, and starts no program. */
  permissionModel: z.literal(true),
  /** False with `--jitless`: V8 compiles no machine code. */
  jit: z.boolean(),
  /** Of executors in a container of their own: whether they can replace the socket in the folder that both have. */
  socketFolder: z.enum(["read-only", "writable"]).optional(),
});
export type ExecutorRights = z.infer<typeof rightsSchema>;

/** Whether nothing of an executor's outlives its starter, and none can pose as it: what greets next is a new starter. */
export const isWalledOff = ({ user, pidNamespace, memory }: ExecutorRights): boolean =>
  user === "separate" || (pidNamespace === "own" && memory === "sealed");

/** What the platform does not give, for a person; empty where nothing is missing. */
export function missingRights(rights: ExecutorRights): string[] {
  const missing: string[] = [];
  if (rights.user === "same" && rights.memory === "readable")
    missing.push("executors run as the user of their starter, and can read its memory");
  if (!isWalledOff(rights) && rights.socketFolder) missing.push("what an executor starts can outlive its warden");
  if (rights.socketFolder === "writable")
    missing.push("executors can replace the socket: mount its folder read-only there");
  if (rights.newPrivileges === "possible") missing.push("executors can start setuid programs");
  return missing;
}
