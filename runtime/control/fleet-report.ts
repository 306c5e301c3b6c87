import { z } from "zod";

/** A fleet as seen by one of its replicas: on the status page, and as parsed by commands. */
export const fleetReportSchema = z.object({
  /** The reporting replica. */
  replica: z.string(),
  /** Number of replicas that take slots. */
  replicas: z.number(),
  /** Why this replica takes no slots. */
  obstacle: z.string().optional(),
  slots: z.array(
    z.object({
      slot: z.number(),
      /** "" if the slot is free. */
      owner: z.string(),
      /**
       * `running`, `opening`, `leaving`, `elsewhere`, `free`, or `damaged`, on whichever replica: its checkpoints cannot be read,
       * and it does not run until they are repaired. Later versions may have further states.
       */
      state: z.string(),
      /**
       * Why this replica does not have it, does not work on it, or cannot write its Lease. For a damaged slot, includes the
       * remedy.
       */
      reason: z.string().optional(),
      /** All functions in this slot, wherever they run. */
      functions: z.array(z.string()),
      /** Seconds that the oldest unfinished event of the slot's functions has waited, if they run here. */
      oldestEventSeconds: z.number().optional(),
    }),
  ),
});

export type FleetReport = z.infer<typeof fleetReportSchema>;
