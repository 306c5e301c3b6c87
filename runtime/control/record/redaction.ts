import { textOfNumber } from "../../base/exact-json.ts";

/** What stands for a value that was taken out. */
const placeholder = "redacted";
/** Values that the API server reads keep their form. */
const placeholders: Readonly<Record<string, string>> = { ".dockerconfigjson": '{"auths":{}}', ".dockercfg": "{}" };

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/** What stands for a number that was taken out: a handler that counts on a number is given one. */
const numberPlaceholder = 0;

/** Names of fields and variables whose text or number is taken for a secret. */
const secretName =
  /passw(?:or)?d|passphrase|pwd|secret|token|credential|(?:api|access|private|signing)[-_.]?key|authorization|cookie|dsn|connection[-_.]?string/i;
/** And names that only say where one is. */
const placeName = /(?:name|namespace|ref|path|file|kind|type)$/i;

/** Secrets wherever they stand: a JWT, a private key, a URL's user, a header's credentials, and tokens by their beginning. */
const secretTexts: readonly (readonly [RegExp, string])[] = [
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, placeholder],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, placeholder],
  [/(:\/\/)[^\s/@]+@/g, `$1${placeholder}@`],
  [/\b(Bearer|Basic) +[\w.~+/=-]{8,}/gi, `$1 ${placeholder}`],
  [/\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|sk_live_\w{10,})/g, placeholder],
];

/**
 * A copy of plain data without what should not be in a repository. Each value of a Secret becomes a placeholder, in base64 where
 * it was. So do texts and numbers whose field, or whose variable, has a secret's name. So does what is a secret wherever it stands.
 * A boolean stays: it is no secret by itself, and `automountServiceAccountToken` is a setting. The `managedFields` and the
 * configuration that kubectl applied last are left out.
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
  // A container's variable, a request's header.
  const isVariable = typeof given.name === "string" && isSecretName(given.name);
  return Object.fromEntries(
    Object.entries(given).flatMap(([field, each]) => {
      if (field === lastApplied || (name === "metadata" && field === "managedFields")) return [];
      if (isSecret && field === "data") return [[field, blanked(each, true)]];
      if (isSecret && field === "stringData") return [[field, blanked(each, false)]];
      // The variable's name is its value's.
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
