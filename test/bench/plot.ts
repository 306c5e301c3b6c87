import type { Throughput } from "./measure.ts";

/** The place and time of a measurement. */
interface Told {
  readonly date: string;
  readonly machine: string;
  readonly events: number;
}

const [labels, bars, barHeight, step, top] = [210, 470, 16, 26, 60];
const colours = { ours: "#0969da", peer: "#8c959f" };

/** An SVG chart of events per second, with a bar for each row; the longest bar fills the width. */
export function plot(rows: ReadonlyMap<string, Throughput>, { date, machine, events }: Told): string {
  const most = Math.max(...[...rows.values()].map(({ eventsPerSecond }) => eventsPerSecond));
  const height = top + rows.size * step + 14;
  const lines = [...rows].map(([name, { eventsPerSecond, cpuMicrosPerEvent }], index) => {
    const y = top + index * step;
    const width = Math.max(1, Math.round((eventsPerSecond / most) * bars));
    const colour = /client|kopf/.test(name) ? colours.peer : colours.ours;
    const figures = `${Math.round(eventsPerSecond).toLocaleString("en")} (${cpuMicrosPerEvent.toFixed(0)} us)`;
    return [
      `  <text x="${labels - 8}" y="${y + 13}" text-anchor="end">${escaped(name)}</text>`,
      `  <rect x="${labels}" y="${y}" width="${width}" height="${barHeight}" fill="${colour}"/>`,
      `  <text x="${labels + width + 6}" y="${y + 13}" fill="#57606a">${figures}</text>`,
    ].join("\n");
  });
  const told = `${events.toLocaleString("en")} Pod events over TLS, ${date}, ${machine}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 ${height}" font-family="system-ui, sans-serif" font-size="13">
  <title>Events per second, beside clients that run their handler unsandboxed</title>
  <rect width="820" height="${height}" fill="#ffffff"/>
  <text x="10" y="22" font-weight="600">Events per second (CPU per event, all processes)</text>
  <text x="10" y="42" fill="#57606a">${escaped(told)}</text>
${lines.join("\n")}
</svg>
`;
}

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
