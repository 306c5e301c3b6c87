import { z } from "zod";
import { rightsSchema } from "../rights.ts";

// Between the parent and the warden that starts executors in a container of their own: frames of wire.ts.
//   warden: greet, then seen and exited        parent: start, cap, kill
// Each executor has a connection of its own beside it, whose first frame is a greeting as well.

/** What a frame is; the parent's are below 48, the warden's from 48. */
export const wardenFrame = { start: 32, cap: 33, kill: 34, greet: 48, join: 49, seen: 50, exited: 51 } as const;

/** Bytes of such a frame. */
export const maxWardenFrame = 4096;

const id = z.int().min(1);
const bytes = z.number().min(0);
const text = z.string().max(500);

/**
 * First frame of the warden: the key that the parent left beside the socket, and what it can take from executors. `memory` is its
 * container's limit in bytes, where there is one.
 */
export const greeting = z.strictObject({
  key: text,
  rights: rightsSchema.omit({ jit: true }),
  memory: bytes.optional(),
});
/** First frame of an executor's connection: the executor's number and the token that the parent named when it asked for it. */
export const joining = z.strictObject({ id, token: text });
/** What the parent asks for. */
export const start = z.strictObject({ id, token: text, jitless: z.boolean() });
export const cap = z.strictObject({ id, bytes });
export const kill = z.strictObject({ id });
/** The highest resident memory of an executor so far, and its end. */
export const seen = z.strictObject({ id, peak: bytes });
export const exited = z.strictObject({ id, peak: bytes, reason: z.enum(["memory", "exited"]), detail: text });

/** The file beside the socket that holds the key, while a warden may connect: never while a guest's code can run. */
export const keyFile = (socketPath: string): string => `${socketPath}.key`;
