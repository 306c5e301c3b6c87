import type { z } from "zod";
import type { seriesAnswerSchema } from "../schemas.ts";
import { type Loaded, useData } from "./api.tsx";
import { Plot } from "./plot.tsx";

export type Series = z.infer<typeof seriesAnswerSchema>;

/** Loads the samples of the last minutes, of one function or of all, every 10 seconds. */
export function useSeries(minutes: number, name?: string): Loaded<Series> {
  const of = name === undefined ? "" : `&function=${encodeURIComponent(name)}`;
  return useData<Series>(`/api/metrics/series?points=${minutes * 6}${of}`, [], 10_000);
}

/** Events, errors and waiting events over time. */
export function SeriesPlots({
  of: { from, stepMs, sum, functions },
  minutes,
  name,
}: {
  of: Series;
  /** The width of the plots. */
  minutes: number;
  name?: string;
}) {
  const shown = name === undefined ? sum : functions.find((each) => each.name === name);
  if (!shown || shown.events.length === 0) {
    return <p class="quiet">Plots begin some seconds after the start of the runtime.</p>;
  }
  const perSecond = (counts: readonly number[]) => counts.map((count) => (count * 1000) / stepMs);
  const axis = { from: Date.parse(from), stepMs, room: (minutes * 60_000) / stepMs };
  return (
    <div class="plots">
      <Plot
        {...axis}
        title="Events"
        unit="a second"
        lines={[
          { name: "ended", look: "good", values: perSecond(shown.events) },
          { name: "failed", look: "bad", values: perSecond(shown.errors) },
        ]}
      />
      <Plot
        {...axis}
        title="Waiting"
        unit="events"
        lines={[{ name: "waiting", look: "accent", values: shown.waiting }]}
      />
    </div>
  );
}
