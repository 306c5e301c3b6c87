import type { ScalarTag } from "yaml";
import type { Dialect } from "../document/document.ts";

// Scalars without quotes as Go's reader of kubeconfigs and plugin output takes them (go.yaml.in/yaml/v2, `resolve.go`). It
// follows YAML 1.1: `yes` and `012` are not strings. A token of digits alone is therefore refused, as by kubectl.

const number =
  /^[-+]?(?:0[xX][\da-fA-F_]{1,16}|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][-+]?[\d_]+)?|\.\d[\d_]*(?:[eE][-+]?\d+)?|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$/;

/** A number too large for Go is a string to it; a number that JSON cannot hold is a fault. */
function numberOf(text: string, fault: (message: string) => void): number | string {
  const [, sign = "", digits = ""] = /^([-+]?)(.*)$/.exec(text.replaceAll("_", "")) ?? [];
  if (/^\.(?:inf|nan)$/i.test(digits)) fault(`${text} is not a number that kubectl accepts`);
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

/** YAML dialect of kubectl: the last value of a duplicate key counts, and `<<` merges another list or map. */
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
