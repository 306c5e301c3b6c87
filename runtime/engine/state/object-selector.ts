import { hash } from "node:crypto";
import { labelQuery } from "../../kube/label-query.ts";
import type { Trigger } from "../../manifest/function.ts";
import { RawFields } from "../filter/raw-fields.ts";

/** The parts of an object that a selector reads. */
interface Selected {
  readonly namespace: string;
  readonly name: string;
  readonly body: Buffer;
}

const labelsField = new RawFields([["metadata", "labels"]]);

/**
 * Decides which objects a trigger selects, as far as the process can tell by itself. Namespaces chosen by labels, and fields
 * other than name and namespace, are judged by the API server alone: they pass here.
 */
export class ObjectSelector {
  /** Hash that identifies the selectors. */
  readonly tag: string;
  private readonly trigger: Trigger;
  private readonly hasLabels: (labels: Readonly<Record<string, string>>) => boolean;
  private readonly fields: readonly (readonly [string, string, string])[];

  constructor(trigger: Trigger) {
    const { namespaces, labelSelector, fieldSelector } = trigger;
    this.trigger = trigger;
    this.tag = hash("sha256", JSON.stringify([namespaces, labelSelector, fieldSelector]), "base64url").slice(0, 6);
    this.hasLabels = labelQuery(labelSelector);
    this.fields = [...fieldSelector.matchAll(/(metadata\.name(?:space)?)(!?=)([^,]*)/g)].map(
      ([, field = "", operator = "", value = ""]) => [field, operator, value.replace(/\\(.)/g, "$1")],
    );
  }

  selects({ namespace, name, body }: Selected): boolean {
    const { namespaces, labelSelector } = this.trigger;
    if (namespaces.type === "names" && !namespaces.names.includes(namespace)) return false;
    const hasFields = this.fields.every(([field, operator, value]) => {
      const isIt = (field === "metadata.name" ? name : namespace) === value;
      return operator === "=" ? isIt : !isIt;
    });
    return hasFields && (labelSelector === "" || body.length === 0 || this.hasLabels(labelsOf(body)));
  }
}

function labelsOf(body: Buffer): Readonly<Record<string, string>> {
  const [raw] = labelsField.of({ body }) ?? [];
  const labels = raw
    ? raw.length > 0
      ? JSON.parse(raw.toString())
      : {}
    : JSON.parse(body.toString()).metadata?.labels;
  return labels ?? {};
}
