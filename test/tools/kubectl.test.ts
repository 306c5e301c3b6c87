import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { helmPath, kubectlPath } from "./kubectl.ts";

const run = async (path: string, ...args: string[]) => (await promisify(execFile)(path, args)).stdout;

test("kubectl and helm are real ones that run, also when several ask for them at once", {
  timeout: 120_000,
}, async () => {
  const [kubectl, helm, again] = await Promise.all([kubectlPath(), helmPath(), helmPath()]);
  expect(await run(kubectl, "version", "--client")).toMatch(/Client Version: v1\.\d+/);
  expect(await run(helm, "version", "--short")).toMatch(/^v\d+\.\d+/);
  expect(again).toBe(helm);
});
