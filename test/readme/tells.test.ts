import { expect, it } from "vitest";
import { read } from "./sections.ts";
import { countTells, tellsIn, tellsOfMessages, tellsOfPages } from "./tells.ts";

/** The counts of the last `npm run tells`, which writes lower counts and refuses higher ones. */
const allowed: Readonly<Record<string, number>> = JSON.parse(read("test/readme/tells.json"));

it("each room has as many hard turns of phrase as `test/readme/tells.json` says, and no new ones", () => {
  expect(countTells(), "rewrite what rose; `npm run tells` takes up what fell").toEqual(allowed);
});

it("the pages that users read have no hard turn of phrase", () => {
  expect(tellsOfPages()).toEqual([]);
});

it("messages, hints, log lines and help have no hard turn of phrase", () => {
  expect(tellsOfMessages()).toEqual([]);
});

it.each([
  ["What is over is counted.", 1],
  ["Where none is kept, it is told.", 3],
  ["Of these, two are kept anew beside it.", 3],
  ["Where is it built?", 0],
  ["It runs so that order holds, so that nothing is lost.", 1],
  ["| default |\n| --- |\n| none |", 0],
  ["Call `told` where nothing else helps.", 0],
])("a sentence's tells are counted: %s", (text, count) => {
  expect(tellsIn(text)).toHaveLength(count);
});
