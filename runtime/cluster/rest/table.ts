import type { KubeObject } from "../api/object.ts";
import { ageColumn, name } from "../kinds/columns/cells.ts";
import { type Column, present, type ResourceType } from "../kinds/resource-type.ts";

const plain: readonly Column[] = [name, ageColumn];

function columnsOf(type: ResourceType): readonly Column[] {
  return type.columns ?? plain;
}

/** metav1.TableColumnDefinition of every column of a kind. */
export function columnDefinitions(type: ResourceType): unknown[] {
  return columnsOf(type).map((column) => ({
    name: column.name,
    type: column.type ?? "string",
    format: column.format ?? "",
    description: column.description ?? "",
    priority: column.priority ?? 0,
  }));
}

/** metav1.TableRow of one object. `include` selects how much of the object the row contains. */
export function tableRow(type: ResourceType, object: KubeObject, now: number, include: string): unknown {
  const cells = columnsOf(type).map((column) => column.cell(object, now));
  if (include === "None") return { cells, object: null };
  return { cells, object: include === "Object" ? present(type, object) : metadataOnly(object) };
}

/** metav1.PartialObjectMetadata of an object. */
export function metadataOnly(object: KubeObject): unknown {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata };
}
