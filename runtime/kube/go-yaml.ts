import type { ScalarTag } from "yaml";
import type { Dialect } from "../document/document.ts";

// How Go's reader of kubeconfigs and of plugins' answers (go.yaml.in/yaml/v2, `resolve.go`) takes a scalar without quotes.
// It is YAML 1.1: `yes` and `012` are no texts. So a token of digits alone is as little a text to us as it is to kubectl.

const number =
  /^[-+]?(?:0[xX][\da-fA-F_]{1,16}|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][-+]?[\d_]+)?|\.\d[\d_]*(?:[eE][-+]?\d+)?|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$/;

/** A number too large for Go is a text to it, and one that JSON cannot hold a fault. */
function numberOf(text: string, fault: (message: string) => void): number | string {
  const [, sign = "", digits = ""] = /^([-+]?)(.*)$/.exec(text.replaceAll("_", "")) ?? [];
  if (/^\.(?:inf|nan)$/i.test(digits)) fault(`${text} is no number that kubectl takes`);
  const size = /^0[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number(digits);
  if (!Number.isFinite(size)) return text;
  return sign === "-" ? -size : size;
}

const scalar = (type: string, test: RegExp, resolve: ScalarTag["resolve"]): ScalarTag => ({
  tag: `tag:yaml.org,2002:${type}`,
  default: true,
  test,
  resolve,
});

/** YAML as kubectl reads it: the last of a key's values counts, and a list or map may be merged into another by `<<`. */
export const goYaml: Dialect = {
  lenient: true,
  schema: {
    schema: "failsafe",
    merge: true,
    customTags: [
      scalar("null", /^(?:~|null|Null|NULL)?$/, () => null),
      scalar("bool", /^(?:[yY]|yes|Yes|YES|true|True|TRUE|on|On|ON)$/, () => true),
      scalar("bool", /^(?:[nN]|no|No|NO|false|False|FALSE|off|Off|OFF)$/, () => false),
      scalar("float", number, numberOf),
      { tag: "tag:yaml.org,2002:int", resolve: numberOf },
      { tag: "tag:yaml.org,2002:binary", resolve: (text: string) => Buffer.from(text, "base64").toString("utf8") },
    ],
  },
};
