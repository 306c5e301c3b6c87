import { z } from "zod";
import { fleetReportSchema } from "./fleet-report.ts";
import { functionReportSchema } from "./function-status/function-report.ts";

/** The reason why something does not work, in one word and in words. */
const troubleSchema = z.object({ reason: z.string(), message: z.string() }).partial().optional();

/** The part of `/status` that the commands show. A runtime of another version may say less, or more. */
export const statusAnswerSchema = z.looseObject({
  role: z.string().default("active"),
  /** Whether the runtime reviews tokens of the cluster. */
  tokenReview: z.boolean().optional(),
  lease: z.object({ holder: z.string() }).optional(),
  checkpoint: troubleSchema,
  deployment: troubleSchema,
  history: troubleSchema,
  sandbox: troubleSchema,
  functions: z
    .array(
      // A function whose manifest cannot be read may have no name.
      functionReportSchema
        .omit({ code: true, reads: true, filtered: true })
        .partial()
        .extend({
          reason: z.string().optional(),
          triggers: z.array(z.looseObject({ name: z.string(), kind: z.string() })).default([]),
        })
        .loose(),
    )
    .default([]),
  sources: z
    .array(
      z.looseObject({
        apiVersion: z.string(),
        kind: z.string(),
        namespace: z.string().optional(),
        labelSelector: z.string().optional(),
        fieldSelector: z.string().optional(),
        state: z.string(),
        message: z.string().optional(),
        resourceVersion: z.string().optional(),
        lastByteAgeMs: z.number().optional(),
        subscribers: z.number().optional(),
      }),
    )
    .default([]),
  fleet: fleetReportSchema.optional(),
});
export type StatusAnswer = z.infer<typeof statusAnswerSchema>;
