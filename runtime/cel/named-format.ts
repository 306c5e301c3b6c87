import type { Library, LibraryFunction } from "./library.ts";
import type { Meter } from "./meter.ts";
import { isUrl } from "./url.ts";
import { Optional } from "./value.ts";

/** A named format. `check` returns the faults of a text; empty if it is valid. */
class NamedFormat {
  readonly check: (text: string) => string[];
  constructor(check: (text: string) => string[]) {
    this.check = check;
  }

  compareTo(other: unknown): number {
    return other === this ? 0 : Number.NaN;
  }
}

const label = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const oldLabel = /^[a-z](?:[-a-z0-9]*[a-z0-9])?$/;
const name = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** Maximum length of a DNS label and subdomain: k8s.io/apimachinery, pkg/util/validation/validation.go. */
const labelLength = 63;
const subdomainLength = 253;

const limited = (text: string, most: number): string[] =>
  text.length > most ? [`must be no more than ${most} characters`] : [];

const labels = (what: string, syntax: RegExp) => (text: string) => [
  ...limited(text, labelLength),
  ...(syntax.test(text.slice(0, labelLength + 1)) ? [] : [`must be ${what}`]),
];

/** Checks each part separately, because one expression for all would be quadratic. */
const subdomain = (text: string): string[] => {
  const parts = text.slice(0, subdomainLength + 1).split(".");
  return [
    ...limited(text, subdomainLength),
    ...(parts.every((part) => label.test(part)) ? [] : ["must be a lowercase RFC 1123 subdomain"]),
  ];
};

/** A generated suffix follows, so a dash is allowed at the end, as by `maskTrailingDash` of k8s.io/apimachinery. */
const prefix = (check: (text: string) => string[]) => (text: string) =>
  check(text.length > 1 && text.endsWith("-") ? `${text.slice(0, -2)}a` : text);

function qualifiedName(text: string): string[] {
  const slash = text.indexOf("/");
  const [before, own] = slash < 0 ? [undefined, text] : [text.slice(0, slash), text.slice(slash + 1)];
  return [
    ...(before === undefined ? [] : subdomain(before).map((fault) => `prefix part ${fault}`)),
    ...limited(own, labelLength).map((fault) => `name part ${fault}`),
    ...(name.test(own.slice(0, labelLength + 1))
      ? []
      : ["name part must consist of alphanumeric characters, '-', '_' or '.'"]),
  ];
}

const labelValue = (text: string): string[] => [
  ...limited(text, labelLength),
  ...(text === "" || name.test(text.slice(0, labelLength + 1)) ? [] : ["must be a label's value"]),
];

const holds = (fault: string, test: (text: string) => boolean) => (text: string) => (test(text) ? [] : [fault]);

const isDate = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/.test(text) && new Date(`${text}T00:00:00Z`).toJSON()?.startsWith(text) === true;

const isDateTime = (text: string): boolean =>
  isDate(text.slice(0, 10)) &&
  /^[\s\S]{10}[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,20})?(?:[Zz]|[+-]\d\d:\d\d)$/.test(text);

const label1123 = labels("a lowercase RFC 1123 label", label);
const label1035 = labels("an RFC 1035 label", oldLabel);

/** With the names in k8s.io/apiserver, pkg/cel/library/format.go. */
const formats: Readonly<Record<string, NamedFormat>> = {
  dns1123Label: new NamedFormat(label1123),
  dns1123Subdomain: new NamedFormat(subdomain),
  dns1035Label: new NamedFormat(label1035),
  qualifiedName: new NamedFormat(qualifiedName),
  dns1123LabelPrefix: new NamedFormat(prefix(label1123)),
  dns1123SubdomainPrefix: new NamedFormat(prefix(subdomain)),
  dns1035LabelPrefix: new NamedFormat(prefix(label1035)),
  labelValue: new NamedFormat(labelValue),
  uri: new NamedFormat(holds("invalid URI", isUrl)),
  uuid: new NamedFormat(
    holds("does not match the UUID format", (text) => /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(text)),
  ),
  byte: new NamedFormat(
    holds("invalid base64", (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)),
  ),
  date: new NamedFormat(holds("invalid date", isDate)),
  datetime: new NamedFormat(holds("invalid datetime", isDateTime)),
};

function validate(meter: Meter, { check }: NamedFormat, text: string): Optional {
  meter.payText(text.length, 10);
  const faults = check(text);
  return faults.length === 0 ? Optional.none : new Optional(faults);
}

/** Kubernetes' named formats: `!format.dns1123Label().validate(name).hasValue()`. */
export const namedFormats: Library = {
  types: [["kubernetes.NamedFormat", NamedFormat]],
  namespaces: ["format"],
  functions: [
    [
      "format.named(string): optional<kubernetes.NamedFormat>",
      (_, _namespace: unknown, key: string) =>
        Object.hasOwn(formats, key) ? new Optional(formats[key]) : Optional.none,
    ],
    ["kubernetes.NamedFormat.validate(string): optional<list<string>>", validate],
    ...Object.entries(formats).map(
      ([key, format]): LibraryFunction => [`format.${key}(): kubernetes.NamedFormat`, () => format],
    ),
  ],
};
