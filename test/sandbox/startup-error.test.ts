import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { StartupError } from "../../runtime/sandbox/startup-error.ts";
import { settle } from "../virtual-clock.ts";

const explained = (error: StartupError) =>
  new Promise<string>((resolve) => {
    error.explain("status 1", resolve);
  });

test("an executor's end names the error and the file that it could not reach", async () => {
  const stderr = new PassThrough();
  const error = new StartupError(stderr);
  stderr.end(
    "node:internal\n  throw\n\nError: Access to this API has been restricted.\n    at x {\n  resource: '/a/package.json'\n}\n",
  );
  expect(await explained(error)).toBe("status 1: Error: Access to this API has been restricted. (/a/package.json)");
});

test("an executor that wrote nothing, or no error, ended as it did", async () => {
  for (const text of ["", "(node:1) a warning\n"]) {
    const stderr = new PassThrough();
    const error = new StartupError(stderr);
    stderr.end(text);
    expect(await explained(error)).toBe("status 1");
  }
});

test("of a standard error without end 4 KiB are read, and nothing of it reaches a terminal", async () => {
  const stderr = new PassThrough();
  const error = new StartupError(stderr);
  stderr.write(`TypeError: \u001b[31m${"x".repeat(2_000)}\n`);
  for (let chunk = 0; chunk < 10; chunk++) stderr.write("x".repeat(2_000));
  await settle();
  expect(stderr.isPaused()).toBe(true);
  const text = await explained(error);
  expect(text).toMatch(/^status 1: TypeError: \?\[31mx+$/);
  expect(text.length).toBeLessThan(320);
});
