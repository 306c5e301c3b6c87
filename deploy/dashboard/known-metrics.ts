import { type Gauges, Metrics } from "../../runtime/observe/metrics.ts";

/** A metric that the runtime serves. */
export interface KnownMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
}

/** The states of a runtime without functions. */
export const noStates: Gauges = {
  isActive: () => true,
  functions: () => [],
  unloaded: () => [],
  standings: () => [],
  parked: () => [],
  reads: () => [],
  cache: () => ({ bytes: 0, limit: 0, suspensions: [] }),
  sources: () => [],
  canaries: () => [],
};

/** Returns every metric in `/metrics`, also Node's own, sorted by name. */
export async function knownMetrics(): Promise<KnownMetric[]> {
  const text = await new Metrics().text(noStates);
  return [...text.matchAll(/^# HELP (\w+) (.*)\n# TYPE \1 (\w+)$/gm)]
    .map(([, name = "", help = "", type = ""]) => ({ name, help, type }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
