import { parse, type ScalarTag, type Tags } from "yaml";
import { int64, UnreadableNumber } from "../exact-json.ts";

/**
 * Numbers as Go's YAML decoder reads them: integers in four bases, with underscores, and exact if they fit in 64 bits.
 */
const number: ScalarTag = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  test: /^[-+]?(?:\d[\w.+-]*|\.\d[\w+-]*|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$/,
  resolve: (text) => numberOf(text.replaceAll("_", "")) ?? text,
};

/** The tags of YAML's core schema, with a replacement for numbers. */
const tags = (core: Tags): Tags => [
  number,
  ...core.filter((tag) => typeof tag === "string" || !/:(?:int|float)$/.test(tag.tag)),
];

/**
 * Parses a YAML document. Throws if the text is not YAML. Throws an UnreadableNumber for `.inf` and `.nan`, which JSON cannot
 * express.
 */
export function parseYaml(text: string): unknown {
  return parse(text, refuseSpecial, { maxAliasCount: 100, customTags: tags });
}

function refuseSpecial(_: unknown, value: unknown): unknown {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  const shown = Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  throw new UnreadableNumber(shown, `error converting YAML to JSON: json: unsupported value: ${shown}`);
}

/** Returns the number that a scalar without underscores represents; `undefined` if it is a text. */
function numberOf(text: string): number | bigint | undefined {
  const special = /^[-+]?\.(inf|nan)$/i.exec(text)?.[1]?.toLowerCase();
  if (special) return special === "nan" ? Number.NaN : Number(`${text.startsWith("-") ? "-" : ""}Infinity`);
  const whole = integerOf(text);
  if (whole !== undefined) return int64(whole) ?? Number(whole);
  if (!/^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** Parses an integer in the form of Go's literals, or in the octal form `0o17`. */
function integerOf(text: string): bigint | undefined {
  const [, sign = "", digits = ""] = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9]\d*)$/.exec(text) ?? [];
  if (digits === "") return undefined;
  const value = BigInt(digits.replace(/^0[oO]?(?=[0-7])/, "0o"));
  return sign === "-" ? -value : value;
}
