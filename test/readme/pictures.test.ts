import { globSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { paints, pictureStyle } from "./picture-style.ts";
import { read } from "./sections.ts";

interface Segment {
  readonly from: readonly [x: number, y: number];
  readonly to: readonly [x: number, y: number];
}

/** The estimated box of a text: a character is 0.6 of the font size wide. */
interface TextBox {
  readonly text: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly size: number;
}

type Attributes = Readonly<Record<string, string>>;

const attributesOf = (tag: string): Attributes =>
  Object.fromEntries([...tag.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value]));

/** Segments of a path of straight lines: absolute M, H, V, L and relative h, v, l. */
function segmentsOf(path: string): Segment[] {
  const segments: Segment[] = [];
  let [x, y] = [0, 0];
  for (const [, command = "", text = ""] of path.matchAll(/([MHVLhvl])([^A-Za-z]*)/g)) {
    const [a = 0, b = 0] = text.trim().split(/[ ,]+/).map(Number);
    const from = [x, y] as const;
    if (command === "M" || command === "L") [x, y] = [a, b];
    else if (command === "l") [x, y] = [x + a, y + b];
    else if (command === "H" || command === "h") x = command === "H" ? a : x + a;
    else y = command === "V" ? a : y + a;
    if (command !== "M") segments.push({ from, to: [x, y] });
  }
  return segments;
}

function boxOf(text: string, attributes: Attributes): TextBox {
  const size = Number(attributes["font-size"]);
  const width = text.length * size * 0.6;
  const share = { middle: 0.5, end: 1 }[attributes["text-anchor"] ?? ""] ?? 0;
  const [left, base] = [Number(attributes.x) - width * share, Number(attributes.y)];
  return { text, left, right: left + width, top: base - size * 0.8, bottom: base + size * 0.25, size };
}

/** The four sides of a rectangle. */
function sidesOf({ x = "0", y = "0", width, height }: Attributes): Segment[] {
  const [left, top] = [Number(x), Number(y)];
  const [right, bottom] = [left + Number(width), top + Number(height)];
  const corners = [
    [left, top],
    [right, top],
    [right, bottom],
    [left, bottom],
  ] as const;
  return corners.map((from, index) => ({ from, to: corners[(index + 1) % 4] ?? from }));
}

/** Lines, sides of rectangles and texts of a picture, without the content of its `defs`. Groups pass their attributes on. */
function drawn(svg: string): { lines: Segment[]; texts: TextBox[] } {
  const lines: Segment[] = [];
  const texts: TextBox[] = [];
  const groups: Attributes[] = [];
  const tags = svg
    .replace(/<defs>[\s\S]*?<\/defs>/g, "")
    .matchAll(/<(\/?)(svg|g|path|line|rect|text)\b([^>]*)>([^<]*)/g);
  for (const [, isEnd, name, tag = "", text = ""] of tags) {
    if (isEnd) {
      if (name !== "text") groups.pop();
      continue;
    }
    const attributes = { ...groups.at(-1), ...attributesOf(tag) };
    if (name === "svg" || name === "g") groups.push(attributes);
    else if (name === "text") texts.push(boxOf(text, attributes));
    else if (name === "rect") lines.push(...sidesOf(attributesOf(tag)));
    else if (name === "path") lines.push(...segmentsOf(attributes.d ?? ""));
    else {
      const { x1, y1, x2, y2 } = attributes;
      lines.push({ from: [Number(x1), Number(y1)], to: [Number(x2), Number(y2)] });
    }
  }
  return { lines, texts };
}

/** True if a line crosses the inside of a box. Computed by the part of the line that is between the box's sides. */
function crosses({ from, to }: Segment, { left, right, top, bottom }: TextBox): boolean {
  let [begin, end] = [0, 1];
  for (const [start, stop, low, high] of [
    [from[0], to[0], left, right],
    [from[1], to[1], top, bottom],
  ] as const) {
    const length = stop - start;
    if (length === 0) {
      if (start <= low || start >= high) return false;
      continue;
    }
    const shares = [(low - start) / length, (high - start) / length];
    begin = Math.max(begin, Math.min(...shares));
    end = Math.min(end, Math.max(...shares));
  }
  return begin < end;
}

const pictures = globSync("**/*.svg", {
  cwd: join(import.meta.dirname, "../.."),
  exclude: (name) => /(^|\/)(node_modules|\.packages|\.image)(\/|$)/.test(name),
}).filter((file) => file !== "deploy/chart/icon.svg");

it.each(pictures)("no line runs through a word: %s", (file) => {
  const { lines, texts } = drawn(read(file));
  expect(texts.length).toBeGreaterThan(0);
  const struck = lines.flatMap((line) => texts.filter((text) => crosses(line, text)).map(({ text }) => text));
  expect(struck).toEqual([]);
});

it("a line through a word is found", () => {
  const { lines, texts } = drawn(
    '<svg font-size="14"><g text-anchor="middle"><text x="387" y="198">checkpoint</text></g><path d="M815 175v18H287"/></svg>',
  );
  expect(lines.filter((line) => texts.some((text) => crosses(line, text)))).toHaveLength(1);
});

it("a side of a box through a word is found", () => {
  const { lines, texts } = drawn(
    '<svg font-size="14"><rect x="10" y="10" width="50" height="30"/><text x="20" y="30">checkpoint</text></svg>',
  );
  expect(lines.filter((line) => texts.some((text) => crosses(line, text)))).toHaveLength(1);
});

it.each(pictures)("has the drawing style of all pictures, and no colour apart from it: %s", (file) => {
  const [beforeStyle = "", afterStyle = ""] = read(file).split(pictureStyle);
  expect(afterStyle, "put `pictureStyle` of test/readme/picture-style.ts below the title").not.toBe("");
  const drawing = beforeStyle + afterStyle;
  expect(drawing.match(/<style|(?:fill|stroke|style)="|#[0-9a-f]{3,8}\b/g)).toBeNull();
  const used = [...drawing.matchAll(/ class="([^"]*)"/g)].map(([, name = ""]) => name);
  expect(used.filter((name) => !Object.hasOwn(paints, name))).toEqual([]);
});

it.each(pictures)(
  "fits a telephone: narrow, with letters that can be read, and all words within the picture: %s",
  (file) => {
    const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(read(file))?.map(Number) ?? [];
    expect(width).toBeLessThanOrEqual(480);
    const { texts } = drawn(read(file));
    expect(texts.filter(({ size }) => size < 13)).toEqual([]);
    const isInside = ({ left, right, top, bottom }: TextBox) =>
      left >= 0 && top >= 0 && right <= (width ?? 0) && bottom <= (height ?? 0);
    expect(texts.filter((text) => !isInside(text))).toEqual([]);
  },
);

/** The relative luminance of WCAG 2. */
function luminanceOf(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((start) => Number.parseInt(colour.slice(start, start + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const fillOf = (rule: string): string => /fill:(#\w+)/.exec(rule)?.[1] ?? "";

it.each(["light", "dark"] as const)("words of a picture have a contrast of at least 4.5 on a %s page", (scheme) => {
  const contrasts = (["ink", "soft"] as const).flatMap((text) =>
    (["page", "box", "zone", "guest"] as const).map((ground) => {
      const [low = 0, high = 0] = [text, ground]
        .map((name) => luminanceOf(fillOf(paints[name]?.[scheme] ?? "")))
        .sort((one, other) => one - other);
      return { text, ground, contrast: (high + 0.05) / (low + 0.05) };
    }),
  );
  expect(contrasts.filter(({ contrast }) => contrast < 4.5)).toEqual([]);
});
