import { expect, it } from "vitest";
import { memoryBeyond } from "../../runtime/sandbox/container-size.ts";
import { limitIn } from "../../runtime/sandbox/supervisor/container-memory.ts";

it.each([
  ["1073741824\n", 2 ** 30],
  ["max\n", undefined],
  // Version 1 of cgroups, without a limit.
  ["9223372036854771712\n", undefined],
  ["", undefined],
])("a container's limit is what the kernel says of it: %j", (text, bytes) => {
  expect(limitIn(text)).toBe(bytes);
});

it("only memory above the container's is too much for it", () => {
  expect(memoryBeyond(2 ** 30, 2 ** 30)).toBeUndefined();
  expect(memoryBeyond(2 ** 30 + 2 ** 20, 2 ** 30)?.message).toMatch(
    /^WF_SANDBOX_CONTAINER_SMALL: .*1025Mi, and that container has 1024Mi/,
  );
});
