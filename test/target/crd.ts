// Custom resources in API groups that only one test uses.

import type { Body } from "./client.ts";
import { admin, eventually, removeAtEnd, unique } from "./fixture.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** The schema of most tests: defaults, bounds, a pattern, an enum, a free-form part and a list keyed by name. */
export const widgetSchema = {
  type: "object",
  required: ["spec"],
  properties: {
    spec: {
      type: "object",
      required: ["size"],
      properties: {
        size: { type: "integer", minimum: 1, maximum: 10 },
        colour: { type: "string", enum: ["red", "blue"], default: "red" },
        code: { type: "string", pattern: "^[a-z]+$", maxLength: 5 },
        replicas: { type: "integer", default: 1 },
        limits: { type: "object", default: {}, properties: { cpu: { type: "string", default: "1" } } },
        note: { type: "string", nullable: true },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        port: { "x-kubernetes-int-or-string": true },
        parts: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: {
            type: "object",
            required: ["name"],
            properties: { name: { type: "string" }, value: { type: "string" } },
          },
        },
      },
      "x-kubernetes-validations": [{ rule: "self.replicas <= self.size", message: "replicas must not exceed size" }],
    },
    status: {
      type: "object",
      properties: { phase: { type: "string" }, replicas: { type: "integer" }, selector: { type: "string" } },
    },
  },
};

export interface Definition {
  /** The CustomResourceDefinition's own path. */
  readonly crd: string;
  readonly group: string;
  readonly apiVersion: string;
  /** Path of the collection in a namespace, in `version` (default v1). */
  in(namespace: string, version?: string): string;
  /** An instance with this spec. */
  widget(name: string, spec?: object): object;
}

export interface DefinitionOptions {
  readonly versions?: object[];
  readonly scope?: "Namespaced" | "Cluster";
  readonly names?: object;
}

/** One served and stored version with the status and scale subresources. */
export const widgetVersion = {
  name: "v1",
  served: true,
  storage: true,
  schema: { openAPIV3Schema: widgetSchema },
  subresources: {
    status: {},
    scale: {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
      labelSelectorPath: ".status.selector",
    },
  },
};

/** The manifest of a Widget's definition in `group`. */
export function widgetDefinition(group: string, options: DefinitionOptions = {}): Body {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: options.scope ?? "Namespaced",
      names: { plural: "widgets", singular: "widget", kind: "Widget", ...options.names },
      versions: options.versions ?? [widgetVersion],
    },
  } as unknown as Body;
}

/** Installs Widgets and waits until they can be used. */
export async function defineWidgets(options: DefinitionOptions = {}): Promise<Definition> {
  const group = `${unique("g")}.my.domain`;
  const crd = `${definitions}/widgets.${group}`;
  removeAtEnd(crd);
  await admin.post(definitions, widgetDefinition(group, options));
  const at = (namespace: string, version = "v1") => `/apis/${group}/${version}/namespaces/${namespace}/widgets`;
  await established(crd);
  await eventually(
    () => admin.reply("GET", options.scope === "Cluster" ? `/apis/${group}/v1/widgets` : at("default")),
    (reply) => reply.status === 200,
  );
  const apiVersion = `${group}/v1`;
  const widget = (name: string, spec: object = { size: 3 }) => ({
    apiVersion,
    kind: "Widget",
    metadata: { name },
    spec,
  });
  return { crd, group, apiVersion, in: at, widget };
}

/** Waits for the condition Established. Returns the definition. */
export function established(crd: string): Promise<Body> {
  return eventually(
    () => admin.get(crd),
    (body) => (body.status?.conditions ?? []).some((c: Body) => c.type === "Established" && c.status === "True"),
  );
}
