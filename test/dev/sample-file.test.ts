import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readSamples } from "../../runtime/dev/sample-file.ts";
import { definitionsBeside, unlessGone } from "../../runtime/dev/samples.ts";
import { folderOf } from "../tools/folder.ts";

test("a sample has whole numbers as its file has them, beyond 2^53 as well", () => {
  const yaml =
    "{ apiVersion: v1, kind: Account, metadata: { name: a }, spec: { id: 9007199254740993, size: 0x10, more: -5 } }";
  const folder = folderOf({ "sample.yaml": yaml });
  const [sample] = readSamples(join(folder, "sample.yaml"));
  expect(JSON.stringify(sample?.object)).toContain('"spec":{"id":9007199254740993,"size":16,"more":-5}');
});

test("a folder or a file that its author has just renamed is no fault, and any other is", () => {
  const folder = folderOf({ "whole/function.yaml": "{}" });
  expect(definitionsBeside([join(folder, "broken/function.yaml")])).toEqual([]);
  expect(unlessGone(() => readFileSync(join(folder, "broken/crd.yaml")))).toBeUndefined();
  expect(() => unlessGone(() => readFileSync(folder))).toThrow("EISDIR");
});
