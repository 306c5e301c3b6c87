import { z } from "zod";

/** What is read of a ConfigMap; anybody may have written it. */
const schema = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    resourceVersion: z.string().default(""),
  }),
  data: z.record(z.string(), z.string()).default({}),
  binaryData: z.record(z.string(), z.string()).default({}),
});

/** A ConfigMap as the API server gives it. */
export type ConfigMap = z.output<typeof schema>;

/** Undefined for what is none. */
export function readConfigMap(value: unknown): ConfigMap | undefined {
  return schema.safeParse(value).data;
}
