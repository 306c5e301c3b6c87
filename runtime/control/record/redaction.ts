import { textOfNumber } from "../../base/exact-json.ts";

/** Replaces a removed text. */
const placeholder = "redacted";
/** Replacements for values that the API server parses. */
const placeholders: Readonly<Record<string, string>> = { ".dockerconfigjson": '{"auths":{}}', ".dockercfg": "{}" };

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/** Replaces a removed number, so that handlers that expect a number still get one. */
const numberPlaceholder = 0;

/** Names of fields and variables whose text or number is treated as a secret. */
const secretName =
  /passw(?:or)?d|passphrase|pwd|secret|token|credential|(?:api|access|private|signing)[-_.]?key|authorization|cookie|dsn|connection[-_.]?string/i;
/** Names that only refer to a secret. */
const placeName = /(?:name|namespace|ref|path|file|kind|type)$/i;

/**
 * Patterns of secrets in any text: a JWT, a private key, a URL's user, a header's credentials, and tokens with known prefixes.
 */
const secretTexts: readonly (readonly [RegExp, string])[] = [
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, placeholder],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, placeholder],
  [/(:\/\/)[^\s/@]+@/g, `$1${placeholder}@`],
  [/\b(Bearer|Basic) +[\w.~+/=-]{8,}/gi, `$1 ${placeholder}`],
  [/\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|sk_live_\w{10,})/g, placeholder],
];

/**
 * Returns a copy of plain data without parts that should not be in a repository. Replaced are: each value of a Secret
 * (base64-encoded if it was), texts and numbers whose field or variable has a secret's name, and secrets in any text. Booleans
 * stay: they are no secrets by themselves, and `automountServiceAccountToken` is a setting. The `managedFields` and kubectl's
 * last applied configuration are left out.
 */
export function withoutSecrets(data: unknown): unknown {
  return copy(data, "");
}

function copy(value: unknown, name: string): unknown {
  if (typeof value === "string") return isSecretName(name) ? placeholder : textOf(value);
  if (Array.isArray(value)) return value.map((each) => copy(each, name));
  if (typeof value === "number" || textOfNumber(value) !== undefined)
    return isSecretName(name) ? numberPlaceholder : value;
  if (typeof value !== "object" || value === null) return value;
  const given = value as Readonly<Record<string, unknown>>;
  const isSecret = given.kind === "Secret" && given.apiVersion === "v1";
  // A container's variable, or a request's header.
  const isVariable = typeof given.name === "string" && isSecretName(given.name);
  return Object.fromEntries(
    Object.entries(given).flatMap(([field, each]) => {
      if (field === lastApplied || (name === "metadata" && field === "managedFields")) return [];
      if (isSecret && field === "data") return [[field, blanked(each, true)]];
      if (isSecret && field === "stringData") return [[field, blanked(each, false)]];
      // The value of a variable is treated by the variable's name.
      return [[field, copy(each, isVariable && field === "value" ? String(given.name) : field)]];
    }),
  );
}

const isSecretName = (name: string): boolean => secretName.test(name) && !placeName.test(name);

const textOf = (text: string): string =>
  secretTexts.reduce((left, [pattern, mark]) => left.replaceAll(pattern, mark), text);

function blanked(values: unknown, isBase64: boolean): unknown {
  if (typeof values !== "object" || values === null) return values;
  return Object.fromEntries(
    Object.keys(values).map((key) => {
      const text = placeholders[key] ?? placeholder;
      return [key, isBase64 ? Buffer.from(text).toString("base64") : text];
    }),
  );
}
