import { z } from "zod";
import { dnsLabel, objectName } from "../kube/names.ts";

/** An object's namespace; "" for a cluster-scoped object. Validated, because it becomes part of a path. */
export const namespaceSchema = z.union([z.literal(""), z.string().regex(dnsLabel)]).default("");
/** An object's name. */
export const nameSchema = z.string().regex(objectName);

/** Why a handler did not run, in one word. The first that applies. */
const whyWords = [
  /** The function is not loaded, or does not run as it should. */
  "function",
  /** Another shard of the function has the object. */
  "shard",
  "namespace",
  /** Its source cannot be read, or has not been read yet. */
  "source",
  "labelSelector",
  "fieldSelector",
  /** An event of the object waits for its turn, for its next attempt, or for the function. */
  "queue",
  /** A filter dropped the last event. */
  "events",
  "changedFields",
  "condition",
  "conditionError",
  "lastAnswer",
  "gone",
  "unselected",
  "backlog",
  "key",
  "keyError",
  "initialEvents",
  /** The object does not exist. */
  "object",
  /** Its last event reached the handler. */
  "fired",
  /** Its last event reached the handler, failed, and was given up. */
  "givenUp",
  /** Nothing about it is recorded. */
  "nothing",
] as const;
export type Why = (typeof whyWords)[number];

const checkSchema = z.object({
  /** The rule: `namespace`, `source`, `object`, `labelSelector`, `condition NAME` and so on. */
  name: z.string(),
  passes: z.enum(["yes", "no", "unknown"]),
  says: z.string(),
});
export type Check = z.infer<typeof checkSchema>;

/** An event in a list. Times are ISO 8601. */
const eventSchema = z.object({ at: z.string(), type: z.string(), resourceVersion: z.string() });

const triggerSchema = z.object({
  trigger: z.string(),
  apiVersion: z.string(),
  kind: z.string(),
  reason: z.enum(whyWords),
  why: z.string(),
  /**
   * The result that an event with the object's current state would have. Absent if the object is not selected or does not exist.
   */
  next: z.string().optional(),
  checks: z.array(checkSchema),
  /** Newest first. */
  filtered: z.array(eventSchema.extend({ because: z.string() })),
  runs: z.array(
    eventSchema.extend({
      attempt: z.number(),
      outcome: z.string(),
      durationMs: z.number(),
      error: z.string().optional(),
    }),
  ),
});
export type TriggerExplanation = z.infer<typeof triggerSchema>;

/** Why a function's handler did not run for an object, for each trigger: the answer of `/explain/FUNCTION`. */
export const explanationSchema = z.object({
  function: z.object({
    name: z.string(),
    ready: z.boolean(),
    reason: z.string().optional(),
    message: z.string().optional(),
  }),
  object: z.object({ namespace: z.string(), name: z.string() }),
  /** Empty if the function is not loaded. */
  triggers: z.array(triggerSchema),
  /** Names the replicas that did not answer for their shards. Absent if all did. */
  elsewhere: z.string().optional(),
});
export type Explanation = z.infer<typeof explanationSchema>;

/** The question: the function, and the object by its namespace ("" if it is cluster-scoped) and name. */
export interface ExplainQuestion {
  readonly function: string;
  readonly namespace: string;
  readonly name: string;
}
