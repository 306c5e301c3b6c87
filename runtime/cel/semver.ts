import SemVer from "semver/classes/semver.js";
import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";

/** Maximum length of a version, in characters, as accepted by `semver`. */
const longest = 256;
/** Cost of parsing a version. */
const reading = 1000;

/** A semantic version. */
class SemanticVersion {
  readonly version: SemVer;
  constructor(version: SemVer) {
    this.version = version;
  }

  /** Ignores build metadata. */
  compareTo(other: unknown): number {
    return other instanceof SemanticVersion ? this.version.compare(other.version) : Number.NaN;
  }
}

/** Normalises like Kubernetes: removes a leading `v`, adds a missing minor and patch version of 0, removes leading zeros. */
function normalized(text: string): string | undefined {
  const parts = text.replace(/^v/, "").split(".");
  const [major = "", minor = "0", ...patch] = parts;
  if (parts.length < 3 && /[+-]/.test(parts.at(-1) ?? "")) return undefined;
  return [major, minor, parts.length < 3 ? "0" : patch.join(".")]
    .map((part) => part.replace(/^0+(?=\d)/, ""))
    .join(".");
}

function read(meter: Meter, text: string, normalize: boolean): SemanticVersion | undefined {
  meter.pay(reading);
  if (text.length > longest) return undefined;
  const strict = normalize ? normalized(text) : text;
  // The package accepts a leading v and surrounding spaces; Kubernetes does not.
  if (strict === undefined || !/^\d[^\s]*$/.test(strict)) return undefined;
  try {
    return new SemanticVersion(new SemVer(strict));
  } catch {
    return undefined;
  }
}

function parse(meter: Meter, text: string, normalize = false): SemanticVersion {
  const version = read(meter, text, normalize);
  if (!version) throw new EvaluationError(`a text of ${text.length} characters is no semantic version`);
  return version;
}

/** Kubernetes' functions on semantic versions. */
export const semver: Library = {
  types: [["kubernetes.Semver", SemanticVersion]],
  functions: [
    ["semver(string): kubernetes.Semver", (meter, text: string) => parse(meter, text)],
    ["semver(string, bool): kubernetes.Semver", parse],
    ["isSemver(string): bool", (meter, text: string) => read(meter, text, false) !== undefined],
    [
      "isSemver(string, bool): bool",
      (meter, text: string, normalize: boolean) => read(meter, text, normalize) !== undefined,
    ],
    ["kubernetes.Semver.major(): int", (_, { version }: SemanticVersion) => version.major],
    ["kubernetes.Semver.minor(): int", (_, { version }: SemanticVersion) => version.minor],
    ["kubernetes.Semver.patch(): int", (_, { version }: SemanticVersion) => version.patch],
    [
      "kubernetes.Semver.isGreaterThan(kubernetes.Semver): bool",
      (_, one: SemanticVersion, other: SemanticVersion) => one.compareTo(other) > 0,
    ],
    [
      "kubernetes.Semver.isLessThan(kubernetes.Semver): bool",
      (_, one: SemanticVersion, other: SemanticVersion) => one.compareTo(other) < 0,
    ],
    [
      "kubernetes.Semver.compareTo(kubernetes.Semver): int",
      (_, one: SemanticVersion, other: SemanticVersion) => one.compareTo(other),
    ],
  ],
};
