import type { ScalarTag } from "yaml";
import type { Dialect } from "../document/document.ts";

// How Go's reader of kubeconfigs and of plugins' answers (go.yaml.in/yaml/v2, `resolve.go`) takes a scalar without quotes.
// It is YAML 1.1: `yes` and `012` are no texts. So a token of digits alone is as little a text to us as it is to kubectl.

const number =
  /^[-+]?(?:0[xX][\da-fA-F_]{1,16}|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$/;

function numberOf(text: string): number {
  const [, sign = "", digits = ""] = /^([-+]?)(.*)$/.exec(text.replaceAll("_", "")) ?? [];
  const octal = /^0[0-7]+$/.test(digits);
  const infinite = /^\.inf$/i.test(digits);
  const size = infinite ? Number.POSITIVE_INFINITY : octal ? Number.parseInt(digits, 8) : Number(digits);
  return sign === "-" ? -size : size;
}

const scalar = (type: string, test: RegExp, resolve: (text: string) => unknown): ScalarTag => ({
  tag: `tag:yaml.org,2002:${type}`,
  default: true,
  test,
  resolve,
});

/** YAML as kubectl reads it: the last of a key's values counts, and a list or map may be merged into another by `<<`. */
export const goYaml: Dialect = {
  repeatedKeys: "last",
  schema: {
    schema: "failsafe",
    merge: true,
    customTags: [
      scalar("null", /^(?:~|null|Null|NULL)?$/, () => null),
      scalar("bool", /^(?:[yY]|yes|Yes|YES|true|True|TRUE|on|On|ON)$/, () => true),
      scalar("bool", /^(?:[nN]|no|No|NO|false|False|FALSE|off|Off|OFF)$/, () => false),
      scalar("float", number, numberOf),
    ],
  },
};
