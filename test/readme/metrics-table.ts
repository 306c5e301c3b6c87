import { type KnownMetric, knownMetrics } from "../../deploy/dashboard/known-metrics.ts";

/** Every metric in `/metrics`, except Node's own. */
export const metricsOf = async (): Promise<KnownMetric[]> =>
  (await knownMetrics()).filter(({ name }) => !/^watchfire_(?:process|nodejs)_/.test(name));

const table = await metricsOf();

export const metricsTable = (): string =>
  [
    "| metric | type | meaning |",
    "| --- | --- | --- |",
    ...table.map(({ name, type, help }) => `| \`${name}\` | ${type} | ${help} |`),
  ].join("\n");
