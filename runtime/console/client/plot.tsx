import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { theme } from "./theme.tsx";

/** One line of a plot. `look` is the class of its colour. */
export interface PlotLine {
  readonly name: string;
  readonly look: "accent" | "bad" | "good";
  readonly values: readonly number[];
}

interface PlotProps {
  readonly title: string;
  /** The unit of the values, in words. */
  readonly unit: string;
  /** The time of the first value, in epoch milliseconds, and the time between two of them. */
  readonly from: number;
  readonly stepMs: number;
  readonly lines: readonly PlotLine[];
  /** How many values there will be: until then, the left of the plot is empty. */
  readonly room?: number;
  /** Values are counts of a step, drawn as bars. The caption then has their sum. */
  readonly isCount?: boolean;
}

const height = 150;
/** The space of one mark on the axis of times, in pixels. */
const markWidth = 80;
const dayMs = 86_400_000;

/** Values over time. Its caption says the last and the highest ones, or those below the pointer, so it can be read without the picture. */
export function Plot({ title, unit, from, stepMs, lines, room = 0, isCount = false }: PlotProps) {
  const figure = useRef<HTMLElement>(null);
  const holder = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number>();
  const length = lines[0]?.values.length ?? 0;
  const end = from + (length - 1) * stepMs;
  const span = Math.max(length, room, 2) * stepMs;
  const chosen = theme.value;
  useEffect(() => {
    const { current: box } = holder;
    if (!box || length === 0) return;
    const inks = [...(figure.current?.querySelectorAll(".ink") ?? [])].map((each) => getComputedStyle(each).color);
    const { color: quiet, borderTopColor: grid, font } = getComputedStyle(box);
    const axis = { stroke: quiet, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const times = Array.from({ length }, (_, index) => (from + index * stepMs) / 1000);
    const bars = isCount && uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.9, 40] }) } : {};
    const plot = new uPlot(
      {
        width: box.clientWidth,
        height,
        legend: { show: false },
        cursor: { drag: { x: false, y: false } },
        scales: {
          x: { range: [(end - span) / 1000, (end + (isCount ? stepMs : 0)) / 1000] },
          y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] },
        },
        axes: [
          { ...axis, space: markWidth, size: 30, values: (_, marks) => marks.map((mark) => markText(mark, span)) },
          { ...axis, size: 50, space: 30, ...(isCount && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000] }) },
        ],
        series: [
          {},
          ...lines.map((_, index) => {
            const ink = inks[index] ?? quiet;
            return {
              stroke: ink,
              width: isCount ? 0 : 2,
              points: { show: length < 3 },
              ...bars,
              ...(isCount && { fill: ink }),
            };
          }),
        ],
        hooks: { setCursor: [({ cursor: { idx } }) => setAt(idx ?? undefined)] },
      },
      [times, ...lines.map(({ values }) => [...values])],
      box,
    );
    const resized = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [from, length, chosen, JSON.stringify(lines)]);
  if (length === 0) return <p class="quiet">{title}: there are no values yet.</p>;
  const index = at === undefined || at >= length ? undefined : at;
  return (
    <figure class="plot" ref={figure}>
      <figcaption>
        <strong>{title}</strong>{" "}
        {lines.map(({ name, look, values }) => (
          <span key={name} class="line">
            <span class={`ink ${look}`} aria-hidden="true">
              ■
            </span>{" "}
            {name}: {valueText(index === undefined ? lastOf(values, isCount) : (values[index] ?? 0))}
          </span>
        ))}{" "}
        <span class="quiet">
          {index === undefined
            ? `${isCount ? "in all" : "now"}, at most ${valueText(Math.max(...lines.flatMap(({ values }) => values)))} ${unit}`
            : `at ${new Date(from + index * stepMs).toLocaleTimeString()}`}
        </span>
      </figcaption>
      <div class="canvas" ref={holder} aria-hidden="true" />
    </figure>
  );
}

const lastOf = (values: readonly number[], isCount: boolean): number =>
  isCount ? values.reduce((sum, value) => sum + value, 0) : (values.at(-1) ?? 0);

/** A time on the axis, as exact as the axis is. */
function markText(seconds: number, span: number): string {
  const date = new Date(seconds * 1000);
  if (span > 2 * dayMs) return date.toLocaleDateString([], { month: "short", day: "numeric" });
  const isShort = span < 10 * 60_000;
  return date.toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    ...(isShort && { second: "2-digit" }),
  });
}

/** At most two digits after the point, and no more than are of interest. */
export const valueText = (value: number): string =>
  value === 0 ? "0" : value < 10 ? String(Number(value.toFixed(2))) : String(Math.round(value));

/** The shape of a line, in a table. Its label says the numbers. */
export function Sparkline({
  label,
  look,
  values,
}: {
  label: string;
  look: PlotLine["look"];
  values: readonly number[];
}) {
  const most = Math.max(...values, 0);
  if (values.length < 2 || most === 0) return <span class="quiet">–</span>;
  const points = values.map((value, index) => {
    return `${(100 * index) / (values.length - 1)},${(19 - (18 * value) / most).toFixed(1)}`;
  });
  return (
    <svg class={`spark ${look}`} viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={points.join(" ")} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
