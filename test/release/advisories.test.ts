import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { accepted, graveIn } from "../../deploy/release/advisories.ts";
import { pinned } from "../../deploy/release/pin.ts";

const root = join(import.meta.dirname, "../..");
const textOf = (file: string) => readFileSync(join(root, file), "utf8");
const url = "https://github.com/advisories/GHSA-aaaa-bbbb-cccc";
const via = (severity: string) => ({ name: "undici", title: "a request is smuggled", url, severity, range: "<8.0.0" });
/** npm's report of a package, and of one that depends on it. */
const audit = (severity: string) => ({
  vulnerabilities: { undici: { via: [via(severity)] }, hono: { via: ["undici"] } },
});

it.each(["high", "critical"])("an advisory of the grade %s keeps a release back, and is told once", (severity) => {
  expect(graveIn(audit(severity), [], "2026-11-27")).toEqual([
    `undici <8.0.0: ${severity}: a request is smuggled (${url})`,
  ]);
});

it("a lesser one does not, nor one that was looked at, until its day", () => {
  const exception = { advisory: "GHSA-aaaa-bbbb-cccc", why: "no request of ours has such a head", until: "2026-12-31" };
  expect(graveIn(audit("moderate"), [], "2026-11-27")).toEqual([]);
  expect(graveIn(audit("high"), [exception], "2026-12-30")).toEqual([]);
  expect(graveIn(audit("high"), [exception], "2026-12-31")).toHaveLength(1);
});

it("a registry that gives no list keeps it back as well", () => {
  expect(graveIn({ message: "405 Method Not Allowed" }, [], "2026-11-27")).toEqual([
    "the registry gave no list of advisories: 405 Method Not Allowed",
  ]);
  expect(graveIn({}, [], "2026-11-27")).toHaveLength(1);
});

it("what is accepted says why, and until when", () => {
  for (const { advisory, why, until } of accepted) {
    expect(advisory).toMatch(/^GHSA(-[0-9a-z]{4}){3}$/);
    expect(why.length).toBeGreaterThan(20);
    expect(until).toMatch(/^\d{4}-\d\d-\d\d$/);
  }
});

it("users build their functions on an image that is named by its digest", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  const text = textOf("deploy/functions.Dockerfile");
  // There is no fallback tag: a build without an explicit digest does not start.
  expect(text).toMatch(/^ARG WATCHFIRE_IMAGE\nFROM \$\{WATCHFIRE_IMAGE\}$/m);
  expect(pinned(text, "1.2.3", digest)).toContain(`ARG WATCHFIRE_IMAGE=ghcr.io/watchfire/watchfire:1.2.3@${digest}\n`);
  expect(() => pinned(text, "1.2.3", "latest")).toThrow("no digest");
  expect(textOf(".github/workflows/release.yaml")).toMatch(/release:pin.*\n.*needs\.index\.outputs\.digest/);
});

it("a release asks for advisories before anything is published", () => {
  expect(textOf(".github/workflows/release.yaml")).toMatch(/npm ci\n.*\n? *- run: npm run release:advisories/);
});
