// Each encoding is implemented independently of the redactor, so that the test does not repeat its mistakes.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { encodings } from "../../runtime/access/encodings.ts";
import { Redactor } from "../../runtime/access/redactor.ts";

const redactorOf = (...secrets: string[]): Redactor => {
  const redactor = new Redactor();
  redactor.learn("f", { secrets, configuration: [] });
  return redactor;
};

const escaped = (character: string) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
const bytesOf = (text: string): number[] => [...new TextEncoder().encode(text)];
const urlSafe = (text: string) => text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
/** The forms in which a handler may write a value, by the name of the encoding. */
const written: Readonly<
  Record<keyof typeof encodings, Readonly<Record<string, readonly [value: string, form: string]>>>
> = {
  "unchanged text": {
    plain: ['s3"cr\u001b<ü t', 's3"cr\u001b<ü t'],
    "without the line break of its file": ["s3cr3t\n", "s3cr3t"],
  },
  "with control characters written out": { "as in a log": ['s3"\u001bcr3t', 's3"\\u001bcr3t'] },
  JSON: { quoted: ['s3"<é>\\3t\n', 's3\\"<é>\\\\3t\\n'], "cleaned too": ['s3"<é>\u007f', 's3\\"<é>\\u007f'] },
  "JSON within JSON": { quoted: ['s3"cr3t', 's3\\\\\\"cr3t'] },
  "JSON in ASCII": { "of Python": ["s3crét🔑", `s3cr${escaped("é")}t\\ud83d\\udd11`] },
  "JSON of Go": { "safe in HTML": ["s3<cr>&t", `s3${escaped("<")}cr${escaped(">")}${escaped("&")}t`] },
  "a number": {
    "as a program reads it": ["0012345.50", "12345.5"],
    "as it rounds": ["12345678901234567890", "12345678901234567000"],
  },
  "percent-encoding": { component: ["s3/c?r é", "s3%2Fc%3Fr%20%C3%A9"] },
  "percent-encoding in small letters": { component: ["s3/c?r é", "s3%2fc%3fr%20%c3%a9"] },
  "percent-encoding of a URI": { "with its slashes": ["s3/c?r é<", "s3/c?r%20%C3%A9%3C"] },
  form: { "with plus for space": ["s3 c*r~é", "s3+c*r%7E%C3%A9"] },
  "a URL": {
    path: [`s3'c"r é{t`, "s3'c%22r%20%C3%A9%7Bt"],
    "query, where the scheme is http": [`s3'c"r é{t`, "s3%27c%22r%20%C3%A9{t"],
    "query, where it is another": [`s3'c"r é{t`, "s3'c%22r%20%C3%A9{t"],
    fragment: ["s3'c\"r`é{t", "s3'c%22r%60%C3%A9{t"],
    "user and password": ["s3:c@r|é", "s3%3Ac%40r%7C%C3%A9"],
  },
  base64: {
    "of UTF-8": ["s3cr?~é>", Buffer.from("s3cr?~é>", "utf8").toString("base64")],
    "in a Basic header": ["s3cr?~é>", Buffer.from("ada:s3cr?~é>", "utf8").toString("base64").slice(6)],
  },
  base64url: { "of UTF-8": ["s3cr?~é>", urlSafe(Buffer.from("s3cr?~é>", "utf8").toString("base64"))] },
  "base64 of Latin-1": {
    "by btoa": ["s3crét-\u00ff\u00fe", btoa("s3crét-\u00ff\u00fe")],
    "by btoa in a Basic header": ["s3crét-\u00ff", btoa("ada:s3crét-\u00ff").slice(6)],
    "in ASCII": ["s3cr3t-1", btoa("s3cr3t-1")],
  },
  "base64url of Latin-1": { "by btoa": ["s3crét-\u00ff\u00fe\u00fb", urlSafe(btoa("s3crét-\u00ff\u00fe\u00fb"))] },
  hex: {
    small: [
      "s3cr-é",
      bytesOf("s3cr-é")
        .map((byte) => byte.toString(16))
        .join(""),
    ],
    capital: [
      "s3cr-é",
      bytesOf("s3cr-é")
        .map((byte) => byte.toString(16).toUpperCase())
        .join(""),
    ],
  },
  "hex of Latin-1": { small: ["s3cr-é", [..."s3cr-é"].map((each) => each.charCodeAt(0).toString(16)).join("")] },
};

const cases = Object.entries(written).flatMap(([encoding, forms]) =>
  Object.entries(forms).map(([name, [value, form]]) => [encoding, name, value, form] as const),
);

describe("a value of a Secret", () => {
  it.each(cases)("is cut out in %s: %s", (_encoding, _name, value, form) => {
    const shown = redactorOf(value).redact("f", `<<${form}>>`);
    expect(shown).toMatch(/^<<\[redacted\](?:[\w+/-]?={0,2})>>$/);
  });

  it.each(cases)("is cut out of data in %s: %s", (_encoding, _name, value, form) => {
    const data = redactorOf(value).redactData("f", { list: [[form], { [form]: form }] });
    expect(JSON.stringify(data)).not.toContain(JSON.stringify(form).slice(1, -3));
    expect(JSON.stringify(data).split("[redacted]")).toHaveLength(4);
  });

  it("whatever bytes it has, is found by btoa's text of it", () => {
    const latin1 = fc.string({
      unit: fc.integer({ min: 0x21, max: 0xff }).map((code) => String.fromCharCode(code)),
      minLength: 4,
    });
    fc.assert(
      fc.property(latin1, (value) => {
        const text = btoa(value);
        expect(redactorOf(value).redact("f", text)).toMatch(/^\[redacted\]=*$/);
      }),
    );
  });

  it("is cut out where it is a number or a boolean, under any key and in lists", () => {
    const redactor = redactorOf("4711", "true", "0012.345", "-98765");
    expect(
      redactor.redactData("f", {
        pin: 4711,
        on: true,
        off: false,
        list: [4711, [true, 12.345], 4712, null],
        deep: { n: -98765 },
      }),
    ).toEqual({
      pin: "[redacted]",
      on: "[redacted]",
      off: false,
      list: ["[redacted]", ["[redacted]", "[redacted]"], 4712, null],
      deep: { n: "[redacted]" },
    });
  });

  it("is cut out where it is a whole number that JavaScript does not hold", () => {
    const exact = (JSON as JSON & { rawJSON(text: string): object }).rawJSON("12345678901234567890");
    expect(redactorOf("12345678901234567890").redactData("f", [exact, 12345678901234567890n, 7n])).toEqual([
      "[redacted]",
      "[redacted]",
      7n,
    ]);
  });

  it("as long as a file, is found as text, JSON, a URL and base64, and is learnt without holding the parent up", () => {
    const value = Array.from({ length: 2 ** 18 }, (_, index) =>
      String.fromCodePoint(0x21 + ((index * 7919 + (index >> 3)) % 0xde)),
    ).join("");
    const before = process.threadCpuUsage();
    const redactor = redactorOf(value);
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(500);
    for (const form of [
      value,
      JSON.stringify(value),
      encodeURIComponent(value),
      Buffer.from(value).toString("base64"),
    ]) {
      expect(redactor.redact("f", form)).toMatch(/^"?\[redacted\].{0,3}$/);
    }
  });

  it("of which three characters are left without the space around them hides no ordinary text", () => {
    const text = "abc YWJj 616263 20616263";
    expect(redactorOf(" abc ").redact("f", text)).toBe("abc YWJj 616263 20616263");
  });
});
