import { Metrics } from "../../runtime/observe/metrics.ts";

/** A metric that the runtime serves. */
export interface KnownMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
}

/** Returns every metric in `/metrics`, also Node's own, sorted by name. */
export async function knownMetrics(): Promise<KnownMetric[]> {
  const metrics = new Metrics();
  metrics.leader(() => true);
  metrics.watch({
    functions: () => [],
    unloaded: () => [],
    standings: () => [],
    parked: () => [],
    reads: () => [],
    cache: () => ({ bytes: 0, limit: 0, suspensions: [] }),
    sources: () => [],
  });
  const text = await metrics.text();
  return [...text.matchAll(/^# HELP (\w+) (.*)\n# TYPE \1 (\w+)$/gm)]
    .map(([, name = "", help = "", type = ""]) => ({ name, help, type }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
