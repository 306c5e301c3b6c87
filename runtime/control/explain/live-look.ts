import type { Clock } from "../../base/clock.ts";
import { systemReason } from "../../base/wording.ts";
import { acceptHeader, ObjectIdentity, type SourceSpec, selectorQuery } from "../../informer/fanout/source-spec.ts";
import { listCollection } from "../../informer/list/list.ts";
import type { Change } from "../../informer/scan/change.ts";
import type { Discovery } from "../../kube/discovery.ts";
import { escapedValue, requiredName } from "../../kube/field-selector.ts";
import { resourcePath } from "../../kube/resource.ts";
import type { KubeTransport } from "../../kube/transport.ts";

/** Timeout of one list of one object, in milliseconds. */
const answerMs = 10_000;

/** An object as the API server has it now, and whether the source's selectors select it. */
export type LiveObject =
  | { readonly type: "there"; readonly change: Change; readonly labels: boolean; readonly fields: boolean }
  | { readonly type: "gone" }
  /** The question has the wrong form, such as a namespace for a cluster-scoped kind. */
  | { readonly type: "misnamed"; readonly why: string }
  /** The API server could not be asked. */
  | { readonly type: "unknown"; readonly why: string };

export interface LookParts {
  readonly transport: KubeTransport;
  readonly discovery: Discovery;
  readonly clock: Clock;
}

/** Looks an object up as its source would see it: with the source's list, narrowed to the object's name. */
export async function lookAt(
  { spec, name }: { spec: SourceSpec; name: string },
  parts: LookParts,
): Promise<LiveObject> {
  const { discovery, transport, clock } = parts;
  const { apiVersion, kind, namespace = "", labelSelector, fieldSelector, representation } = spec;
  try {
    const found = await discovery.resolve(apiVersion, kind);
    if (found.type !== "Served") return { type: "unknown", why: found.reason };
    const { resource } = found;
    if (resource.namespaced && namespace === "") {
      return { type: "misnamed", why: `a ${kind} has a namespace: ask for NAMESPACE/NAME` };
    }
    if (!resource.namespaced && namespace !== "") {
      return { type: "misnamed", why: `a ${kind} has no namespace: ask for NAME` };
    }
    const find = async (
      selectors: Pick<SourceSpec, "labelSelector" | "fieldSelector">,
    ): Promise<Change | undefined> => {
      const fields = [`metadata.name=${escapedValue(name)}`, selectors.fieldSelector].filter(Boolean).join(",");
      let change: Change | undefined;
      await listCollection({
        transport,
        clock,
        path: resourcePath(resource, namespace),
        query: selectorQuery({ ...spec, ...selectors, fieldSelector: fields }),
        headers: acceptHeader(spec, "list"),
        identity: new ObjectIdentity(resource, representation),
        from: {},
        paged: true,
        signal: AbortSignal.timeout(answerMs),
        congested: () => undefined,
        item: (each) => {
          if (each.meta.name === name) change = each;
        },
      });
      return change;
    };
    const both = { labelSelector: labelSelector ?? "", fieldSelector: fieldSelector ?? "" };
    const only = requiredName(both.fieldSelector);
    // A selector for another name does not select it, and its right does not allow this question.
    const selected = only === undefined || only === name ? await find(both) : undefined;
    if (selected) return { type: "there", change: selected, labels: true, fields: true };
    const change = await find({ labelSelector: "", fieldSelector: "" });
    if (!change) return { type: "gone" };
    const labels = both.labelSelector === "" || (await find({ ...both, fieldSelector: "" })) !== undefined;
    const fields = both.fieldSelector === "" || (await find({ ...both, labelSelector: "" })) !== undefined;
    return { type: "there", change, labels, fields };
  } catch (error) {
    return { type: "unknown", why: `the API server does not say: ${systemReason(error)}` };
  }
}
