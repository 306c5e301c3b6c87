import { expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { RefusalLog } from "../../runtime/observe/refusal-log.ts";

test("that the functions folder cannot be read is told once, and so is that it can be again", () => {
  const lines: string[] = [];
  const log = new RefusalLog(createLog("info", { write: (line: string) => void lines.push(JSON.parse(line).msg) }));
  const faults = [new WatchfireError("WF_MANIFEST_FOLDER", { what: "it is gone" })];
  const gone = { name: undefined, file: "functions", faults, isFolder: true };
  for (const refused of [[], [gone], [gone], [], []]) log.tell(refused);
  expect(lines).toEqual(["functions folder refused", "functions folder fixed"]);
});
