import { expect, it } from "vitest";
import { drawRecording, spansOf } from "./recordings/picture.ts";
import { read } from "./sections.ts";

const pane = (...lines: readonly (readonly [at: number, text: string])[]) => ({
  title: "terminal 1",
  lines: lines.map(([at, text]) => ({ at, text })),
});

it("each line appears when it was printed, a long pause is shortened, and the last state stays for five seconds", () => {
  const svg = drawRecording("x", [pane([0, "a"], [1_000, "b"], [60_000, "c"])]);
  // 400 ms, then 1,000 ms, then 1,600 ms in place of a minute, then 5,000 ms.
  expect(svg).toContain("[class]{animation:8000ms linear infinite}");
  expect([...svg.matchAll(/@keyframes f(\d){0%,([\d.]+)%/g)].map(([, name, share]) => [name, share])).toEqual([
    ["0", "5.00"],
    ["1", "17.50"],
    ["2", "37.50"],
  ]);
});

it("colours and bold become attributes, and other escape sequences are left out", () => {
  expect(spansOf("\x1b[32m$\x1b[0m \x1b[2K\x1b[1mrun\x1b[22m now")).toEqual([
    { text: "$", style: ' fill="#8ddb8c"' },
    { text: " ", style: "" },
    { text: "run", style: ' font-weight="bold"' },
    { text: " now", style: "" },
  ]);
});

it("a text cannot leave its element, and a line that is wider than the terminal continues below", () => {
  const svg = drawRecording('a "b"', [pane([0, `<script>${"x".repeat(150)}`])]);
  expect(svg).toContain('aria-label="a &quot;b&quot;"');
  expect(svg).not.toContain("<script>");
  expect([...svg.matchAll(/<text class="m0"/g)]).toHaveLength(2);
});

it("a reader who wants no motion sees every line at once", () => {
  expect(drawRecording("x", [pane([0, "a"])])).toContain(
    "@media(prefers-reduced-motion:reduce){[class]{animation:none}}",
  );
});

it.each(["dev", "explain", "replay"])(
  "the recording of %s is linked from the README, and names no folder of a machine",
  (name) => {
    expect(read("README.md")).toContain(`runtime/docs/recordings/${name}.svg`);
    expect(read(`runtime/docs/recordings/${name}.svg`)).not.toMatch(/\/(tmp|home|root|work|Users)\//);
  },
);
