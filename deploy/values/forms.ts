import { kubernetesForm } from "./kubernetes.ts";

/** A part of a JSON Schema. Its patterns are evaluated by Go's regexp, which does not support lookahead. */
export type Form = Readonly<Record<string, unknown>>;

const text = (pattern: string, rest: Form = {}): Form => ({ type: "string", pattern: `^${pattern}$`, ...rest });

const label = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";
const qualified = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
const subdomain = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

const byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const group = "[0-9A-Fa-f]{1,4}";
const some = `(${group}(:${group}){0,6})?`;
/**
 * Groups of an IPv6 address. Only the API server checks their number around a `::`; a pattern that did so would fill the screen.
 */
const groups = `(${group}:){7}${group}|${some}::${some}`;

/** Largest whole number: Helm reads numbers as doubles, so a larger one would be changed. */
const maximum = Number.MAX_SAFE_INTEGER;

/** Kubernetes' format of quantities (apimachinery `api/resource.Quantity`), without a sign. */
const quantity = {
  type: ["string", "number"],
  minimum: 0,
  maximum,
  pattern: "^([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$",
};

const forms: Readonly<Record<string, Form>> = {
  /** RFC 1123, or empty. */
  dnsLabel: text(`(${label})?`),
  /** A Service's name begins with a letter (RFC 1035); 52 characters leave room for the suffix that a StatefulSet appends. */
  serviceName: text("([a-z]([-a-z0-9]*[a-z0-9])?)?", { maxLength: 52 }),
  /** RFC 1123, or empty; 240 characters leave room for `-checkpoint-0`. */
  accountName: text(`(${subdomain})?`, { maxLength: 240 }),
  storageClass: text(`(-|${subdomain})?`, { maxLength: 253 }),
  objectName: text(`(${subdomain})?`, { maxLength: 253 }),
  /** As in OCI's distribution specification. Also a whole number, because `--set image.tag=1` produces one. */
  imageTag: { type: ["string", "integer"], minimum: 0, maximum, pattern: "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$" },
  quantity,
  cidr: text(`(${byte}([.]${byte}){3}/(3[0-2]|[12]?[0-9])|(${groups})/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))`),
  /** As in the Prometheus operator's definitions. */
  duration: text(`(0|(${["y", "w", "d", "h", "m", "s", "ms"].map((unit) => `([0-9]+${unit})?`).join("")}))`, {
    minLength: 1,
  }),
  labels: {
    type: "object",
    additionalProperties: text(`(${qualified})?`),
    propertyNames: { pattern: `^(${subdomain}/)?${qualified}$` },
  },
  /** Fields of a Probe other than how it asks. */
  probe: {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(
      ["initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold"].map(
        (field) => [field, { type: "integer", minimum: field === "initialDelaySeconds" ? 0 : 1, maximum: 86_400 }],
      ),
    ),
  },
  /** ResourceRequirements that are merged into those of `size`: null removes an amount, or all of a group. */
  resources: {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(
      ["requests", "limits"].map((group) => [
        group,
        { type: ["object", "null"], additionalProperties: { ...quantity, type: [...quantity.type, "null"] } },
      ]),
    ),
  },
  /** An object with a name, and any other fields that the cluster's Kubernetes knows. */
  named: { type: "object", required: ["name"], properties: { name: text(label) } },
};

/**
 * Returns the JSON Schema of that name: one of `forms`, or a type of Kubernetes by its OpenAPI name. Throws for an unknown name.
 */
export function formOf(name: string): Form {
  const form = forms[name] ?? kubernetesForm(name, replaced);
  if (!form) throw new Error(`no form ${name}`);
  return form;
}

/** Replacements for types whose published schema is looser than the API server's own checks. */
const replaced: Readonly<Record<string, Form>> = {
  "io.k8s.apimachinery.pkg.api.resource.Quantity": quantity,
  "io.k8s.api.networking.v1.IPBlock": {
    type: "object",
    additionalProperties: false,
    required: ["cidr"],
    properties: { cidr: forms.cidr, except: { type: "array", items: forms.cidr } },
  },
};
