import { z } from "zod";
import { unusable } from "../../base/config.ts";
import { version } from "../../base/version.ts";

/** The destination of spans, and the share of traces that is sampled. */
export interface TraceSettings {
  /** The address to which batches are posted. */
  readonly url: string;
  /** Headers of each request, which may hold credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** Timeout of one request in milliseconds. */
  readonly timeoutMs: number;
  /** The share of traces that are sampled, from 0 to 1. */
  readonly ratio: number;
  /** Attributes of the process, such as `service.name`. */
  readonly resource: Readonly<Record<string, string>>;
}

const samplers = [
  ...["always_on", "always_off", "traceidratio"],
  ...["parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"],
] as const;
/** An empty variable counts as unset, as OpenTelemetry demands. */
const variable = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((text) => (text === "" ? undefined : text), schema.optional());
const address = variable(z.url({ protocol: /^https?$/, error: "the http or https URL of an OTLP collector" }));
const encoding = variable(
  z.enum(["http/json", "http/protobuf"], { error: "http/json or http/protobuf; grpc is not spoken" }),
);
const share = z.coerce.number({ error: "a number from 0 to 1" }).min(0, { error: "a number from 0 to 1" });
const milliseconds = z.coerce.number({ error: "milliseconds" }).int({ error: "milliseconds" });
const pairs = variable(
  z.string().transform((text, context) => {
    const entries = text.split(",").flatMap((pair) => {
      const at = pair.indexOf("=");
      return at < 0 ? [] : [[pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())] as const];
    });
    if (
      entries.every(
        ([name, value]) => /^[\w.-]+$/.test(name) && value !== undefined && !/[^\t -~\x80-\xff]/.test(value),
      )
    )
      return Object.fromEntries(entries) as Record<string, string>;
    context.addIssue({
      code: "custom",
      message: "pairs such as `name=value,other=value`, with values percent-encoded",
    });
    return z.NEVER;
  }),
);

const schema = z.object({
  OTEL_SDK_DISABLED: variable(z.string()),
  OTEL_TRACES_EXPORTER: variable(z.enum(["otlp", "none"], { error: "otlp or `none`" })),
  OTEL_EXPORTER_OTLP_ENDPOINT: address,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address,
  OTEL_EXPORTER_OTLP_PROTOCOL: encoding,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: encoding,
  OTEL_EXPORTER_OTLP_HEADERS: pairs,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: pairs,
  OTEL_EXPORTER_OTLP_TIMEOUT: variable(milliseconds.min(1, { error: "milliseconds" })),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: variable(milliseconds.min(1, { error: "milliseconds" })),
  OTEL_TRACES_SAMPLER: variable(z.enum(samplers, { error: `one of ${samplers.join(", ")}` })),
  OTEL_TRACES_SAMPLER_ARG: variable(share.max(1, { error: "a number from 0 to 1" })),
  OTEL_SERVICE_NAME: variable(z.string()),
  OTEL_RESOURCE_ATTRIBUTES: pairs,
});

/** The collector on the same machine, which OpenTelemetry names as the default. */
const localCollector = "http://localhost:4318";

/**
 * Reads OpenTelemetry's variables. Returns `undefined`, without a look at the others, unless one of them names a collector.
 * @param instance the pod, where there is one
 * @throws WatchfireError WF_CLI_ENVIRONMENT with the variable and its allowed values
 */
export function readTraceSettings(
  variables: Readonly<NodeJS.ProcessEnv>,
  instance: { readonly namespace?: string | undefined; readonly pod?: string | undefined } = {},
): TraceSettings | undefined {
  const isDisabled = /^true$/i.test(variables.OTEL_SDK_DISABLED ?? "") || variables.OTEL_TRACES_EXPORTER === "none";
  const { OTEL_TRACES_EXPORTER: exporter, OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT } = variables;
  if (isDisabled || !(exporter || OTEL_EXPORTER_OTLP_ENDPOINT || OTEL_EXPORTER_OTLP_TRACES_ENDPOINT)) return undefined;
  const { data: set, error } = schema.safeParse(variables);
  if (!set) throw unusable(withoutCredentials(variables), error);
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base = localCollector, OTEL_TRACES_SAMPLER: sampler = "always_on" } = set;
  const { namespace, pod } = instance;
  return {
    url: set.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? `${base.replace(/\/+$/, "")}/v1/traces`,
    headers: { ...set.OTEL_EXPORTER_OTLP_HEADERS, ...set.OTEL_EXPORTER_OTLP_TRACES_HEADERS },
    timeoutMs: set.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ?? set.OTEL_EXPORTER_OTLP_TIMEOUT ?? 10_000,
    ratio: ratioOf(sampler, set.OTEL_TRACES_SAMPLER_ARG),
    resource: {
      "service.name": "watchfire",
      "service.version": version,
      ...(namespace !== undefined && { "k8s.namespace.name": namespace }),
      ...(pod !== undefined && { "k8s.pod.name": pod, "service.instance.id": pod }),
      ...set.OTEL_RESOURCE_ATTRIBUTES,
      ...(set.OTEL_SERVICE_NAME !== undefined && { "service.name": set.OTEL_SERVICE_NAME }),
    },
  };
}

/** No event has a parent, so the samplers that ask a parent first decide as their roots do. */
function ratioOf(sampler: (typeof samplers)[number], argument = 1): number {
  if (sampler.endsWith("always_off")) return 0;
  return sampler.endsWith("traceidratio") ? argument : 1;
}

/** The variables as an error may show them. */
const withoutCredentials = (variables: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, /HEADERS|ENDPOINT/.test(name) ? "(not shown)" : value]),
  );

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
