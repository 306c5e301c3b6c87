import { Metrics } from "../../runtime/observe/metrics.ts";

/** One of the runtime's own metrics. */
export interface Metric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
}

/** Every metric in `/metrics`, except Node's own. */
export async function metricsOf(): Promise<Metric[]> {
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
    .filter(({ name }) => !/^watchfire_(?:process|nodejs)_/.test(name))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

const table = await metricsOf();

export const metricsTable = (): string =>
  [
    "| metric | type | meaning |",
    "| --- | --- | --- |",
    ...table.map(({ name, type, help }) => `| \`${name}\` | ${type} | ${help} |`),
  ].join("\n");
