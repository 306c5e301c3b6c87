import { expect, it } from "vitest";
import { sourceText } from "../../runtime/bundle/source-text.ts";

const sources = ["functions/f/handler.ts", "node_modules/left/index.js", null];
const bundleWith = (map: object) => {
  const sourceMap = JSON.stringify(map);
  return { sourceMap, sourceMapLength: sourceMap.length };
};
const bundle = bundleWith({ sources, sourcesContent: ["mine", "theirs", "nobody's"] });

it("gives an author's file as it was built, and neither a package's nor one that did not go in", () => {
  expect(sourceText(bundle, "functions/f/handler.ts")).toBe("mine");
  expect(sourceText(bundle, "node_modules/left/index.js")).toBeUndefined();
  expect(sourceText(bundle, "/etc/passwd")).toBeUndefined();
  expect(sourceText(bundleWith({ sources }), "functions/f/handler.ts")).toBeUndefined();
});

it("reads no map that is applied to no stack", () => {
  const { sourceMap } = bundle;
  expect(sourceText({ sourceMap, sourceMapLength: 2 ** 20 + 1 }, "functions/f/handler.ts")).toBeUndefined();
});
