import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Redactor } from "../../runtime/access/redactor.ts";
import { clean, cut, cutMark, shorten } from "../../runtime/base/wording.ts";
import { cut as guestCut } from "../../runtime/sandbox/guest/cut.guest.ts";

/** Minimum length of a recognised beginning of a secret, in characters. */
const least = 4;

const units = (...characters: string[]) =>
  fc.string({ unit: fc.constantFrom(...characters), minLength: least, maxLength: 20 });
/**
 * Includes characters that JSON, a URL or the sandbox escapes. The alphabet is small, so that a value often ends as it begins.
 */
const secrets = fc.oneof(units("a", "b"), units("a", "K", '"', "\\", "\n", "\u0001", "\u007f", "é", "🔑", "/"));
/** Characters that occur in no form of a secret. */
const others = fc.string({ unit: fc.constantFrom(" ", ".", ";", ","), maxLength: 12 });

const forms: Readonly<Record<string, (value: string) => string>> = {
  "as it is": (value) => value,
  "in JSON": (value) => JSON.stringify(value).slice(1, -1),
  "in a URL": encodeURIComponent,
  "in base64": (value) => Buffer.from(value).toString("base64"),
};

const redactorOf = (...values: string[]): Redactor => {
  const redactor = new Redactor();
  redactor.learn("f", { secrets: values, configuration: [] });
  return redactor;
};

describe("of a text that is cut, wherever the cut falls,", () => {
  it.each(Object.entries(forms))("four characters that a secret begins with are never left: %s", (_, form) => {
    fc.assert(
      fc.property(secrets, others, others, fc.nat(), (secret, before, after, at) => {
        const written = form(secret);
        const text = `${before}${written}${after}`;
        for (const cutter of [cut, guestCut]) {
          // Cut in the guest and cleaned in the parent, like a guest's output.
          const shown = redactorOf(secret).redact("f", clean(cutter(text, 1 + (at % text.length))));
          expect(shown).not.toContain(clean(written).slice(0, least));
        }
      }),
    );
  });

  it("four characters that a secret begins with are never left of an actual value in an error", () => {
    fc.assert(
      fc.property(secrets, fc.nat({ max: 30 }), (secret, over) => {
        const shown = redactorOf(secret).redact(
          "f",
          `name is too long, got ${shorten(`${".".repeat(80 - over)}${secret}...`)}`,
        );
        expect(shown).not.toContain(JSON.stringify(secret).slice(1, 1 + least));
      }),
    );
  });

  it("a secret whose end another begins with hides neither's beginning", () => {
    fc.assert(
      fc.property(secrets, secrets, fc.nat(), fc.nat(), (one, other, overlap, at) => {
        const joint = one.slice(one.length - (overlap % one.length)) + other;
        const text = `. ${one}${other.slice(0, at % other.length)}${cutMark}`;
        const shown = redactorOf(one, joint).redact("f", text);
        expect(shown).not.toContain(one.slice(0, least));
      }),
    );
  });

  it("what precedes the cut stays where no secret begins so, and the beginning of one stays where nothing is cut", () => {
    const redactor = redactorOf("deploy-key-1234");
    expect(redactor.redact("f", `the pod is cut${cutMark}`)).toBe(`the pod is cut${cutMark}`);
    expect(redactor.redact("f", "the deploy")).toBe("the deploy");
  });

  it("neither half of a character is left alone, and no more than the limit", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "🔑") }), fc.integer({ min: 2, max: 20 }), (text, limit) => {
        const short = cut(text, limit);
        expect(short).toBe(guestCut(text, limit));
        expect(short.isWellFormed()).toBe(true);
        expect(short.length).toBeLessThanOrEqual(limit);
        expect(text.startsWith(short.replace(cutMark, ""))).toBe(true);
        expect(short === text).toBe(text.length <= limit);
      }),
    );
  });
});

describe("however a handler writes its values,", () => {
  const values = Array.from({ length: 100 }, (_, index) => `secret-${"a".repeat(900)}-${index}`);
  const texts = {
    "many cuts": "x…".repeat(2000),
    "beginnings without end": "secret-aaaa…".repeat(1600),
    "what all values begin with": `secret-${"a".repeat(20_000)}`,
    "a text that is cut": `${"z".repeat(20_000)}…`,
  };

  it.each(Object.entries(texts))("no line of log takes the runtime long to look through: %s", (_, text) => {
    const redactor = redactorOf(...values);
    redactor.redact("f", text);
    const before = process.threadCpuUsage();
    redactor.redact("f", text);
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(50);
  });

  it("what there is no time to look through is taken out", () => {
    const [value = ""] = values;
    const shown = redactorOf(...values).redact("f", `before ${"secret-a".repeat(20_000)} ${value}`);
    expect(shown).toMatch(/^before /);
    expect(shown).not.toContain(value);
  });
});

describe("what a handler writes so that it is slow to tell from its values", () => {
  const values = Array.from({ length: 100 }, (_, index) => "a".repeat(200 + index));
  const leastMs = (run: () => void): number =>
    Math.min(
      ...Array.from({ length: 3 }, () => {
        const before = process.cpuUsage();
        run();
        const { user, system } = process.cpuUsage(before);
        return (user + system) / 1000;
      }),
    );

  it.each<[string, (redactor: Redactor) => unknown]>([
    ["one long text", (redactor) => redactor.redact("f", "a".repeat(20_000))],
    ["fields of a line", (redactor) => redactor.redactData("f", { list: Array(130).fill("a".repeat(150)) })],
    ["many short lines", (redactor) => Array.from({ length: 130 }, () => redactor.redact("f", "a".repeat(150)))],
  ])("holds the parent up for less than 100 ms, and shows no value: %s", (_, write) => {
    const redactor = redactorOf(...values);
    expect(JSON.stringify(write(redactor))).not.toContain("a".repeat(200));
    expect(leastMs(() => write(redactor))).toBeLessThan(100);
  });

  it("takes no ordinary text along, though a hundred values begin alike", () => {
    const keys = Array.from({ length: 100 }, (_, index) => `sk_live_${"x".repeat(20)}${index}.`);
    const text = `${keys.slice(0, 10).join(" and ")} and the rest`;
    expect(redactorOf(...keys).redact("f", text)).toBe(`${Array(10).fill("[redacted]").join(" and ")} and the rest`);
  });
});
