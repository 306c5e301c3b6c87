/** A line of a terminal, and when it appeared. */
export interface RecordedLine {
  /** Milliseconds since the beginning. */
  readonly at: number;
  /** With escape sequences for colours. */
  readonly text: string;
}

/** A terminal of a recording: its title and its lines. */
export interface RecordedPane {
  readonly title: string;
  readonly lines: readonly RecordedLine[];
}

const fontSize = 12;
const charWidth = 7.25;
const lineHeight = 17;
const margin = 14;
/** Columns after which a line continues on the next row, as in a terminal. */
const columns = 118;
/** A longer pause is shown as this one, in milliseconds. */
const longestPauseMs = 1_600;
/** How long the last state stays before the recording begins again, in milliseconds. */
const endMs = 5_000;

const colours: Readonly<Record<string, string>> = {
  "31": "#f47067",
  "32": "#8ddb8c",
  "33": "#daaa3f",
  "36": "#6cb6ff",
  "90": "#8b949e",
};

const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** A part of a line in one style. */
interface Span {
  readonly text: string;
  readonly style: string;
}

/** The parts of a line by its escape sequences. Sequences other than colours and bold are left out. */
export function spansOf(line: string): Span[] {
  const spans: Span[] = [];
  let style = "";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: -- a terminal's escape sequences begin with one
  for (const part of line.split(/(\x1b\[[0-9;]*[A-Za-z])/)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: -- as above
    const [, code] = /^\x1b\[([0-9;]*)m$/.exec(part) ?? [];
    if (code !== undefined)
      style = code === "1" ? ' font-weight="bold"' : code in colours ? ` fill="${colours[code]}"` : "";
    else if (part !== "" && !part.startsWith("\x1b")) spans.push({ text: part, style });
  }
  return spans;
}

/** The rows of a line, each at most as wide as the terminal. */
function rowsOf(line: string): Span[][] {
  const rows: Span[][] = [[]];
  let width = 0;
  for (const { text, style } of spansOf(line)) {
    for (let rest = text; rest !== ""; ) {
      if (width === columns) {
        rows.push([]);
        width = 0;
      }
      const head = rest.slice(0, columns - width);
      rows.at(-1)?.push({ text: head, style });
      width += head.length;
      rest = rest.slice(head.length);
    }
  }
  return rows;
}

/** Shortens pauses. Returns the new time of each old one. */
function withoutPauses(times: readonly number[]): ReadonlyMap<number, number> {
  const sorted = [...new Set(times)].sort((a, b) => a - b);
  const shown = new Map<number, number>();
  let [now, before] = [400, sorted[0] ?? 0];
  for (const time of sorted) {
    now += Math.min(time - before, longestPauseMs);
    before = time;
    shown.set(time, now);
  }
  return shown;
}

/**
 * Draws a recording as an animated SVG, in which each line appears when it was printed. It begins again at its end. A reader who
 * wants no motion sees all lines.
 * @param description what it shows, for those who cannot see it
 */
export function drawRecording(description: string, panes: readonly RecordedPane[]): string {
  const shown = withoutPauses(panes.flatMap(({ lines }) => lines.map(({ at }) => at)));
  const total = Math.max(...shown.values()) + endMs;
  const moments = [...new Set(shown.values())];
  const body: string[] = [];
  let y = 0;
  for (const { title, lines } of panes) {
    body.push(`<rect y="${y}" width="100%" height="26" fill="#2d333b"/>`);
    body.push(`<text x="${margin}" y="${y + 17}" fill="#8b949e">${escapeXml(title)}</text>`);
    y += 26 + 8;
    for (const { at, text } of lines)
      for (const row of rowsOf(text)) {
        y += lineHeight;
        if (row.length === 0) continue;
        const moment = moments.indexOf(shown.get(at) ?? 0);
        const spans = row.map((span) => `<tspan${span.style}>${escapeXml(span.text)}</tspan>`).join("");
        body.push(`<text class="m${moment}" x="${margin}" y="${y - 4}">${spans}</text>`);
      }
    y += 12;
  }
  const width = Math.ceil(columns * charWidth + 2 * margin);
  const frames = moments.map((moment, index) => {
    const share = ((100 * moment) / total).toFixed(2);
    return `@keyframes f${index}{0%,${share}%{opacity:0}${(Number(share) + 0.01).toFixed(2)}%,100%{opacity:1}}.m${index}{animation-name:f${index}}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" role="img" aria-label="${escapeXml(description)}" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="${fontSize}" fill="#cdd9e5">
<!-- Made by npm run recordings from a real run. -->
<style>text{white-space:pre}[class]{animation:${total}ms linear infinite}${frames.join("")}@media(prefers-reduced-motion:reduce){[class]{animation:none}}</style>
<rect width="100%" height="100%" rx="6" fill="#1c2128"/>
${body.join("\n")}
</svg>
`;
}
