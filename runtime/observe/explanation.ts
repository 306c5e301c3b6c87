import { z } from "zod";
import { dnsLabel, objectName } from "../kube/names.ts";

/** An object's namespace, "" of none: it becomes a part of a path. */
export const namespaceSchema = z.union([z.literal(""), z.string().regex(dnsLabel)]).default("");
/** An object's name. */
export const nameSchema = z.string().regex(objectName);

/** Why a handler was not told, in one word: the first that applies. */
const whyWords = [
  /** The function is not loaded, or does not run as it should. */
  "function",
  /** Another shard of the function has the object. */
  "shard",
  "namespace",
  /** Its source cannot be read, or has not been yet. */
  "source",
  "labelSelector",
  "fieldSelector",
  /** An event of the object waits for its turn, for its next attempt, or for the function. */
  "lane",
  /** A filter held the last event back. */
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
  /** There is no such object. */
  "object",
  /** Its last event reached the handler. */
  "fired",
  /** So it did, and was given up. */
  "givenUp",
  /** Nothing of it is on record. */
  "nothing",
] as const;
export type Why = (typeof whyWords)[number];

const checkSchema = z.object({
  /** The rule: `namespace`, `source`, `object`, `labelSelector`, `condition NAME` and the like. */
  name: z.string(),
  passes: z.enum(["yes", "no", "unknown"]),
  says: z.string(),
});
export type Check = z.infer<typeof checkSchema>;

/** ISO 8601, in each of them. */
const eventSchema = z.object({ at: z.string(), type: z.string(), resourceVersion: z.string() });

const triggerSchema = z.object({
  trigger: z.string(),
  apiVersion: z.string(),
  kind: z.string(),
  reason: z.enum(whyWords),
  why: z.string(),
  /** What an event with the object as it is now would come to; absent where the object is not selected or not there. */
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

/** Why a function was not told of an object, trigger by trigger: the answer of `/explain/FUNCTION`. */
export const explanationSchema = z.object({
  function: z.object({
    name: z.string(),
    ready: z.boolean(),
    reason: z.string().optional(),
    message: z.string().optional(),
  }),
  object: z.object({ namespace: z.string(), name: z.string() }),
  /** None where the function is not loaded. */
  triggers: z.array(triggerSchema),
});
export type Explanation = z.infer<typeof explanationSchema>;

/** What is asked: the function, and the object by its namespace ("" of none) and name. */
export interface ExplainQuestion {
  readonly function: string;
  readonly namespace: string;
  readonly name: string;
}
