import { z } from "zod";
import { rightsSchema } from "../rights.ts";

// Frames between the parent and the supervisor, which starts executors in a separate container. The format is that of wire.ts.
//   supervisor: greet, then seen and exited        parent: start, cap, kill
// Each executor also has a separate connection, whose first frame is `join`.

/** Frame types. The parent's are below 48, the supervisor's from 48. */
export const supervisorFrame = { start: 32, cap: 33, kill: 34, greet: 48, join: 49, seen: 50, exited: 51 } as const;

/** Maximum bytes of such a frame. */
export const maxSupervisorFrame = 4096;

const id = z.int().min(1);
const bytes = z.number().min(0);
const text = z.string().max(500);

/**
 * First frame of the supervisor: the key that the parent left in a file next to the socket, and the restrictions that it can put
 * on executors. `memory` is its container's limit in bytes, if it has one, `cores` the number of cores that it may use.
 */
export const greeting = z.strictObject({
  key: text,
  rights: rightsSchema.omit({ jit: true }),
  memory: bytes.optional(),
  cores: z.int().min(1).max(1024),
});
/** First frame of an executor's connection: the executor's number, and the token that the parent sent with `start`. */
export const joining = z.strictObject({ id, token: text });
/** Requests of the parent. */
export const start = z.strictObject({ id, token: text, jitless: z.boolean() });
export const cap = z.strictObject({ id, bytes });
export const kill = z.strictObject({ id });
/** Reports of the supervisor: an executor's highest resident memory so far, and its end. */
export const seen = z.strictObject({ id, peak: bytes });
export const exited = z.strictObject({ id, peak: bytes, reason: z.enum(["memory", "exited"]), detail: text });

/**
 * Returns the path of the file that holds the key. It exists only while a supervisor may connect, and never while a guest's code
 * can run.
 */
export const keyFile = (socketPath: string): string => `${socketPath}.key`;
