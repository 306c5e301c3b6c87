import { pictureStyle } from "../readme/picture-style.ts";
import type { Throughput } from "./measure.ts";

/** The place and time of a measurement. */
interface Setting {
  readonly date: string;
  readonly machine: string;
  readonly events: number;
}

const [width, margin, barHeight, step, top] = [480, 10, 10, 38, 94];

/** An SVG chart of events per second, with a bar for each row; the longest bar fills the width. Readable on a phone. */
export function plot(rows: ReadonlyMap<string, Throughput>, { date, machine, events }: Setting): string {
  const most = Math.max(...[...rows.values()].map(({ eventsPerSecond }) => eventsPerSecond));
  const height = top + rows.size * step;
  const lines = [...rows].map(([name, { eventsPerSecond, cpuMicrosPerEvent }], index) => {
    const y = top + index * step;
    const length = Math.max(1, Math.round((eventsPerSecond / most) * (width - 2 * margin)));
    const colour = /client|kopf/.test(name) ? "peer" : "ours";
    const figures = `${Math.round(eventsPerSecond).toLocaleString("en")} (${cpuMicrosPerEvent.toFixed(0)} us)`;
    return [
      `  <text class="ink" x="${margin}" y="${y}">${escaped(name)}</text>`,
      `  <text class="soft" x="${width - margin}" y="${y}" text-anchor="end">${figures}</text>`,
      `  <rect class="${colour}" x="${margin}" y="${y + 6}" width="${length}" height="${barHeight}"/>`,
    ].join("\n");
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="14">
  <title>Events per second, next to clients that run their handler unsandboxed</title>
  ${pictureStyle}
  <rect class="page" width="${width}" height="${height}"/>
  <text class="ink" x="${margin}" y="22" font-weight="600">Events per second (CPU per event, all processes)</text>
  <text class="soft" x="${margin}" y="42" font-size="13">${events.toLocaleString("en")} Pod events over TLS, ${date}</text>
  <text class="soft" x="${margin}" y="60" font-size="13">${escaped(machine)}</text>
${lines.join("\n")}
</svg>
`;
}

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
