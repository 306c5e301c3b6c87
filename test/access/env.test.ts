import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resolveEnv } from "../../runtime/access/env.ts";
import { Redactor } from "../../runtime/access/redactor.ts";
import { WatchfireError } from "../../runtime/base/errors.ts";
import type { EnvVar } from "../../runtime/manifest/function.ts";
import { apiServer, manifestOf, ownObjects as own, type Script } from "./api-server.ts";

const base64 = (text: string | Buffer) => Buffer.from(text as string).toString("base64");
const script: Script = ({ path }) =>
  path === "/api/v1/namespaces/watchfire/secrets/slack"
    ? { body: { data: { token: base64("xoxb-0123"), raw: base64(Buffer.from([0xff, 0xfe])) } } }
    : path === "/api/v1/namespaces/watchfire/configmaps/mode"
      ? { body: { data: { mode: "careful" } } }
      : undefined;

async function resolve(env: EnvVar[]) {
  const { transport, received } = await apiServer(script);
  const result = await resolveEnv(manifestOf({ env }), { transport, namespace: "watchfire", own }).catch(
    (error) => error,
  );
  return { result, received };
}

const secret = (key: string, optional = false, name = "slack") => ({ secretKeyRef: { name, key, optional } });

describe("a function's environment", () => {
  it("is read from Secrets and ConfigMaps of the runtime's namespace, each once", async () => {
    const { result, received } = await resolve([
      { name: "A", value: "plain" },
      { name: "TOKEN", ...secret("token") },
      { name: "AGAIN", ...secret("token") },
      { name: "MODE", configMapKeyRef: { name: "mode", key: "mode", optional: false } },
      { name: "NONE", ...secret("missing", true) },
      { name: "GONE", ...secret("token", true, "gone") },
      { name: "__proto__", value: "own" },
    ]);
    expect(Object.entries(result.values)).toEqual([
      ["A", "plain"],
      ["TOKEN", "xoxb-0123"],
      ["AGAIN", "xoxb-0123"],
      ["MODE", "careful"],
      ["__proto__", "own"],
    ]);
    expect(received.map(({ path }) => path.split("/").slice(-2).join("/"))).toEqual([
      "secrets/slack",
      "configmaps/mode",
      "secrets/gone",
    ]);
  });

  it("takes a variable of the local file in place of a Secret, which is not read, and tells the redactor of it", async () => {
    const { transport, received } = await apiServer(script);
    const env = [
      { name: "TOKEN", ...secret("token", false, "gone") },
      { name: "MODE", configMapKeyRef: { name: "mode", key: "mode", optional: false } },
      { name: "NONE", ...secret("none", true, "gone") },
    ];
    const localEnv = { file: ".env", read: () => ({ TOKEN: "local-token", MODE: "other" }) };
    const parts = { transport, namespace: "watchfire", own, localEnv };
    expect(await resolveEnv(manifestOf({ env }), parts)).toEqual({
      values: { TOKEN: "local-token", MODE: "careful" },
      sensitive: { secrets: ["local-token"], configuration: ["careful"] },
    });
    expect(received.map(({ path }) => path.split("/").at(-1))).toEqual(["mode", "gone"]);
    const missing = { name: "KEY", ...secret("key", false, "gone") };
    await expect(resolveEnv(manifestOf({ env: [missing] }), parts)).rejects.toThrow(
      /the variable KEY of f cannot be read: there is no secrets\/gone in namespace watchfire, and KEY is not in \.env/,
    );
  });

  it("never holds a Secret of the runtime's own, which is not even read", async () => {
    const { result, received } = await resolve([{ name: "PEEK", ...secret("x", true, "watchfire-checkpoint-0") }]);
    expect(result.message).toMatch(/^WF_ACCESS_OWN_OBJECT functions\/f\/function\.yaml spec\.env: the variable PEEK /);
    expect(received).toEqual([]);
  });

  it.each([
    [secret("missing"), 'secrets/slack in namespace watchfire has no key "missing"'],
    [secret("token", false, "gone"), "there is no secrets/gone in namespace watchfire"],
    [secret("raw"), "is not UTF-8 text"],
    [secret("constructor"), "has no key"],
  ])("that cannot be read says which variable, object and key: %j", async (ref, words) => {
    const { result } = await resolve([{ name: "TOKEN", ...ref }]);
    expect(result).toBeInstanceOf(WatchfireError);
    expect(result.code).toBe("WF_ACCESS_ENV");
    expect(result.message).toContain("TOKEN");
    expect(result.message).toContain(words);
  });
});

describe("text that leaves the runtime", () => {
  it("holds no value of the function's environment, in whatever form it is written", () => {
    const values = fc.string({ minLength: 4 }).filter((text) => text.trim().length >= 4);
    fc.assert(
      fc.property(values, fc.string(), fc.string(), (value, before, after) => {
        const redactor = new Redactor();
        redactor.learn("f", { secrets: [value], configuration: [] });
        const forms = [
          value,
          value.trim(),
          JSON.stringify(value).slice(1, -1),
          encodeURIComponent(value),
          base64(value),
          Buffer.from(value).toString("base64url"),
          new URLSearchParams({ "": value }).toString().slice(1),
        ];
        for (const form of forms) expect(redactor.redact("f", form)).not.toContain(form);
        expect(redactor.redact("f", `${before}${value}${after}`).split("[redacted]").length).toBeGreaterThan(1);
      }),
    );
  });

  it.each(["base64", "base64url"] as const)(
    "holds none within other text in %s, as a Basic header does",
    (encoding) => {
      const redactor = new Redactor();
      // Contains characters that differ between the two base64 alphabets.
      const secret = "s3cr3t?>~t0k\u{ff}n";
      redactor.learn("f", { secrets: [secret], configuration: [] });
      for (let before = 0; before < 6; before++) {
        for (let after = 0; after < 6; after++) {
          const header = Buffer.from("u".repeat(before) + secret + "v".repeat(after)).toString(encoding);
          const rest = redactor.redact("f", `Basic ${header}`).replace("Basic ", "").split("[redacted]");
          expect(rest).toHaveLength(2);
          expect(Buffer.from(rest[0] ?? "", encoding).toString()).not.toContain("s3");
          // The remainder may begin anywhere within a group of four characters, so every offset is tried.
          for (const shift of ["", "A", "AA", "AAA"]) {
            expect(Buffer.from(shift + rest[1], encoding).toString("latin1")).not.toContain("n");
          }
        }
      }
    },
  );

  it("loses the longer of two values of which one holds the other whole", () => {
    const redactor = new Redactor();
    redactor.learn("f", { secrets: ["abcd", "abcdefgh"], configuration: [] });
    expect(redactor.redact("f", "x abcdefgh abcd")).toBe("x [redacted] [redacted]");
  });

  it("keeps another function's words, and words too short or too common to be secrets", () => {
    const redactor = new Redactor();
    redactor.learn("f", { secrets: ["on", "s3cr3t"], configuration: ["production"] });
    expect(redactor.redact("f", "production is on: s3cr3t")).toBe("production is on: [redacted]");
    expect(redactor.redact("g", "s3cr3t")).toBe("s3cr3t");
    redactor.forget("f");
    expect(redactor.redact("f", "s3cr3t")).toBe("s3cr3t");
  });

  it("is cleaned through and through where it is data", () => {
    const redactor = new Redactor();
    redactor.learn("f", { secrets: ["s3cr3t"], configuration: [] });
    expect(redactor.redactData("f", { a: ["s3cr3t", 1, null], "key s3cr3t": { b: "is s3cr3t" } })).toEqual({
      a: ["[redacted]", 1, null],
      "key [redacted]": { b: "is [redacted]" },
    });
  });
});
