import { expect, it } from "vitest";
import { sourceText } from "../../runtime/bundle/source-text.ts";

const sources = ["functions/f/handler.ts", "node_modules/left/index.js", null];
const bundle = { sourceMap: JSON.stringify({ sources, sourcesContent: ["mine", "theirs", "nobody's"] }) };

it("gives an author's file as it was built, and neither a package's nor one that did not go in", () => {
  expect(sourceText(bundle, "functions/f/handler.ts")).toBe("mine");
  expect(sourceText(bundle, "node_modules/left/index.js")).toBeUndefined();
  expect(sourceText(bundle, "/etc/passwd")).toBeUndefined();
  expect(sourceText({ sourceMap: JSON.stringify({ sources }) }, "functions/f/handler.ts")).toBeUndefined();
});
