/** What the commands take where nothing is said. */
export const defaults = {
  functions: "functions",
  data: ".watchfire",
  /** 9464 is the port that Prometheus exporters of OpenTelemetry use. */
  listen: "127.0.0.1:9464",
} as const;
