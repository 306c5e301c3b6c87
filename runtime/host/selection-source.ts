import type { OwnObjects } from "../access/own-objects.ts";
import type { SourceSpec } from "../informer/fanout/source-spec.ts";
import type { Selection } from "../manifest/function.ts";

/**
 * What a trigger or a read takes of a namespace, "" of all. Of Secrets: without the runtime's own, which hold the last bodies
 * of other functions' objects.
 */
export function sourceOf(
  { apiVersion, kind, labelSelector, fieldSelector: selected, object }: Selection,
  namespace: string,
  own: Pick<OwnObjects, "hiding">,
): SourceSpec {
  const place = namespace === "" ? {} : { namespace };
  const isSecret = apiVersion === "v1" && kind === "Secret";
  const hiding = isSecret && own.hiding({ group: "", resource: "secrets", ...place });
  const fieldSelector = [hiding, selected].filter(Boolean).join(",");
  const form = object === "Metadata" ? ({ representation: "metadata" } as const) : {};
  return { apiVersion, kind, labelSelector, fieldSelector, ...place, ...form };
}
