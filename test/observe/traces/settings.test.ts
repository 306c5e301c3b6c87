import { expect, test } from "vitest";
import { readTraceSettings } from "../../../runtime/observe/traces/settings.ts";

const OTEL_EXPORTER_OTLP_ENDPOINT = "http://collector:4318/";

test.each([
  ["nothing is set", {}],
  ["only the service's name is set", { OTEL_SERVICE_NAME: "shop" }],
  ["the endpoint is empty", { OTEL_EXPORTER_OTLP_ENDPOINT: "" }],
  ["the exporter is none", { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER: "none" }],
  ["OpenTelemetry is disabled", { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED: "TRUE" }],
])("there are no traces while %s", (_, variables) => {
  expect(readTraceSettings(variables)).toBeUndefined();
});

test("the path of traces is added to the common endpoint, and not to that of traces", () => {
  expect(readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT })?.url).toBe("http://collector:4318/v1/traces");
  const OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = "https://traces.example.com/otlp";
  expect(readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT })?.url).toBe(
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  );
  expect(readTraceSettings({ OTEL_TRACES_EXPORTER: "otlp" })?.url).toBe("http://localhost:4318/v1/traces");
});

test.each([
  [undefined, undefined, 1],
  ["always_off", undefined, 0],
  ["parentbased_always_on", "0.1", 1],
  ["traceidratio", "0.25", 0.25],
  ["parentbased_traceidratio", "0.5", 0.5],
  ["parentbased_traceidratio", undefined, 1],
])("the sampler %s with %s samples %d of all traces", (sampler, argument, ratio) => {
  const variables = { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: argument };
  expect(readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, ...variables })?.ratio).toBe(ratio);
});

test("the resource has the service and the pod, and the user's attributes come last", () => {
  const variables = {
    OTEL_EXPORTER_OTLP_ENDPOINT,
    OTEL_RESOURCE_ATTRIBUTES: "service.name=a,k8s.cluster.name=east%2C1",
  };
  expect(readTraceSettings(variables, { namespace: "watchfire", pod: "watchfire-0" })?.resource).toMatchObject({
    "service.name": "a",
    "k8s.cluster.name": "east,1",
    "k8s.namespace.name": "watchfire",
    "k8s.pod.name": "watchfire-0",
  });
  expect(readTraceSettings({ ...variables, OTEL_SERVICE_NAME: "b" })?.resource["service.name"]).toBe("b");
});

test.each([
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/json or http/protobuf"],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317", "the http or https URL"],
  ["OTEL_TRACES_SAMPLER", "jaeger_remote", "one of always_on"],
  ["OTEL_TRACES_SAMPLER_ARG", "2", "a number from 0 to 1"],
  ["OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "api-key=%zz", "pairs such as"],
])("%s=%s is refused with the values that are allowed", (name, value, allowed) => {
  const read = () => readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, [name]: value });
  expect(read).toThrow(name);
  expect(read).toThrow(allowed);
});

test("a refused header is not shown, because it may be a credential", () => {
  const read = () => readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: "key=hunter2%zz" });
  expect(read).not.toThrow("hunter2");
  expect(read).toThrow("OTEL_EXPORTER_OTLP_HEADERS");
});
