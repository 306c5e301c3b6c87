import { z } from "zod";

/** The part of a ConfigMap that is read; anybody may have written it. */
const schema = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    resourceVersion: z.string().default(""),
    labels: z.record(z.string(), z.string()).default({}),
  }),
  data: z.record(z.string(), z.string()).default({}),
  binaryData: z.record(z.string(), z.string()).default({}),
});

/** A ConfigMap returned by the API server. */
export type ConfigMap = z.output<typeof schema>;

/** Returns `undefined` for anything but a ConfigMap. */
export function readConfigMap(value: unknown): ConfigMap | undefined {
  return schema.safeParse(value).data;
}
