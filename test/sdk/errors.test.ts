import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSync } from "esbuild";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseDuration } from "../../sdk/duration.ts";
import * as errors from "../../sdk/errors.ts";

/** The errors of a second copy of the package, which a handler's bundle contains. */
async function secondCopy(): Promise<typeof errors> {
  const entry = new URL("../../sdk/errors.ts", import.meta.url).pathname;
  const [output] = buildSync({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    minify: true,
  }).outputFiles;
  const file = join(tmpdir(), `watchfire-sdk-${process.pid}-${performance.now()}.mjs`);
  writeFileSync(file, output?.text ?? "");
  onTestFinished(() => rmSync(file));
  expect(readFileSync(file, "utf8").length).toBeLessThan(8192);
  return import(/* @vite-ignore */ file);
}

describe("the errors", () => {
  it("are known by instanceof across two copies of the package, in both directions", async () => {
    const other = await secondCopy();
    const thrown = new other.NotFoundError("gone", { status: 404, reason: "NotFound" });
    expect(thrown).toBeInstanceOf(errors.NotFoundError);
    expect(thrown).toBeInstanceOf(errors.KubeError);
    expect(thrown).toBeInstanceOf(Error);
    expect(thrown).not.toBeInstanceOf(errors.ConflictError);
    expect(new errors.PermanentError("x")).toBeInstanceOf(other.PermanentError);
    expect(new errors.RetryAfter(5)).toBeInstanceOf(other.RetryAfter);
    expect(thrown.name).toBe("NotFoundError");
    expect(thrown.stack).toMatch(/^NotFoundError: gone\n/);
  });

  it("tell a user's subclass from its parent", () => {
    class Mine extends errors.PermanentError {}
    class Yours extends errors.PermanentError {}
    expect(new Mine("x")).toBeInstanceOf(errors.PermanentError);
    expect(new Mine("x")).toBeInstanceOf(Mine);
    expect(new errors.PermanentError("x")).not.toBeInstanceOf(Mine);
    expect(new Yours("x")).not.toBeInstanceOf(Mine);
  });

  it.each([null, undefined, 1, "PermanentError", {}, () => {}])("are not %j", (value) => {
    expect(value instanceof errors.PermanentError).toBe(false);
  });

  it("are made from what travels, with their fields", () => {
    const details = { refusedBy: "runtime", missingRule: "- {}" };
    const refused = errors.errorFrom({
      type: "ForbiddenError",
      message: "no",
      status: 403,
      reason: "Forbidden",
      details,
    });
    expect(refused).toBeInstanceOf(errors.ForbiddenError);
    expect(refused).toMatchObject({ ...details, status: 403, reason: "Forbidden", message: "no" });
    const throttled = errors.errorFrom({ type: "TooManyRequestsError", message: "", details: { retryAfterMs: 7 } });
    expect(throttled).toMatchObject({ retryAfterMs: 7 });
    expect(errors.errorFrom({ type: "FetchError", message: "", details: { refused: true } })).toMatchObject({
      refused: true,
    });
    for (const type of ["constructor", "__proto__", "Nonsense"]) {
      expect(errors.errorFrom({ type, message: "m" })).toMatchObject({ name: "Error", message: "m" });
    }
  });
});

describe("RetryAfter", () => {
  it("takes milliseconds or text with units, and refuses anything else", () => {
    expect(new errors.RetryAfter("30s").delayMs).toBe(30_000);
    expect(new errors.RetryAfter(1500).delayMs).toBe(1500);
    for (const bad of ["30", "soon", "", "-1s", "1 s", Number.NaN, -1, Number.POSITIVE_INFINITY]) {
      expect(() => new errors.RetryAfter(bad)).toThrow(TypeError);
    }
  });

  it("adds up the parts of a duration", () => {
    fc.assert(
      fc.property(fc.nat(99), fc.nat(99), fc.nat(99), fc.nat(999), (h, m, s, ms) => {
        expect(parseDuration(`${h}h${m}m${s}s${ms}ms`)).toBe(((h * 60 + m) * 60 + s) * 1000 + ms);
      }),
    );
  });
});
