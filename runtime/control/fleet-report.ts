import { z } from "zod";

/** A fleet, as one of its replicas sees it: on the status page, and as commands read it. */
export const fleetReportSchema = z.object({
  /** Who says so. */
  replica: z.string(),
  /** How many take slots. */
  replicas: z.number(),
  /** Why this one takes no slot. */
  obstacle: z.string().optional(),
  slots: z.array(
    z.object({
      slot: z.number(),
      /** "" for nobody. */
      owner: z.string(),
      /**
       * `running`, `opening`, `leaving`, `elsewhere`, `free`; `damaged`, wherever it is: its positions cannot be read, and it
       * stands still until they are repaired. A later runtime may say more.
       */
      state: z.string(),
      /** Why this replica lacks it, does not work on it, or cannot write its Lease. Of one that is damaged, the remedy too. */
      reason: z.string().optional(),
      /** All that fall into it, wherever they run. */
      functions: z.array(z.string()),
      /** How long the oldest unfinished event of those that run here has waited. */
      oldestEventSeconds: z.number().optional(),
    }),
  ),
});

export type FleetReport = z.infer<typeof fleetReportSchema>;
