import { join } from "node:path";
import { expect, test } from "vitest";
import { readSamples } from "../../runtime/dev/sample-file.ts";
import { folderOf } from "../tools/folder.ts";

test("a sample has whole numbers as its file has them, beyond 2^53 as well", () => {
  const yaml =
    "{ apiVersion: v1, kind: Account, metadata: { name: a }, spec: { id: 9007199254740993, size: 0x10, more: -5 } }";
  const folder = folderOf({ "sample.yaml": yaml });
  const [sample] = readSamples(join(folder, "sample.yaml"));
  expect(JSON.stringify(sample?.object)).toContain('"spec":{"id":9007199254740993,"size":16,"more":-5}');
});
