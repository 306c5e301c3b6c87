import { at, isFields, type KubeObject } from "../../api/object.ts";
import { since } from "../age.ts";
import type { Column } from "../resource-type.ts";

/** The object's name, the first column of every kind but Event. */
export const name: Column = {
  name: "Name",
  type: "string",
  format: "name",
  description: "Name must be unique within a namespace.",
  cell: (object) => object.metadata.name ?? "",
};

/** The object's age, the usual last column. */
export const ageColumn: Column = {
  name: "Age",
  description: "CreationTimestamp is a timestamp representing the server time when this object was created.",
  cell: (object, now) => since(object.metadata.creationTimestamp, now),
};

/** The creation time itself, which some kinds print instead of the age. */
export const createdAt: Column = {
  name: "Created At",
  type: "date",
  description: "CreationTimestamp is a timestamp representing the server time when this object was created.",
  cell: (object) => object.metadata.creationTimestamp ?? null,
};

/** A text column. */
export function text(name: string, cell: Column["cell"], priority = 0): Column {
  return { name, cell, priority };
}

/** A column with the value at a path, or `<none>`. */
export function shown(name: string, path: string, priority = 0): Column {
  return { name, priority, cell: (object) => string(object, path) || "<none>" };
}

/** A column with the integer at a path; 0 if it is missing. */
export function count(name: string, path: string, priority = 0): Column {
  return { name, type: "integer", priority, cell: (object) => number(object, path) };
}

export function string(object: unknown, path: string): string {
  const value = at(object, path);
  return value === undefined || value === null ? "" : String(value);
}

export function number(object: unknown, path: string): number {
  const value = at(object, path);
  return typeof value === "number" ? value : 0;
}

/** The array at a path; empty if it is missing. */
export function list(object: unknown, path: string): unknown[] {
  const value = at(object, path);
  return Array.isArray(value) ? value : [];
}

/** The number of members of the object at a path. */
export function size(object: KubeObject, path: string): number {
  const value = at(object, path);
  return isFields(value) ? Object.keys(value).length : 0;
}

/** `a=b,c=d`, or `<none>`. */
export function pairs(value: unknown): string {
  if (!isFields(value)) return "<none>";
  const text = Object.entries(value)
    .map(([key, one]) => `${key}=${String(one)}`)
    .sort()
    .join(",");
  return text || "<none>";
}

/** A metav1.LabelSelector as kubectl writes it. */
export function selector(value: unknown): string {
  if (!isFields(value)) return "<none>";
  const parts = isFields(value.matchLabels)
    ? Object.entries(value.matchLabels).map(([k, v]) => `${k}=${String(v)}`)
    : [];
  for (const one of list(value, "matchExpressions")) {
    const key = string(one, "key");
    const values = list(one, "values").join(",");
    const operator = string(one, "operator");
    if (operator === "In") parts.push(`${key} in (${values})`);
    else if (operator === "NotIn") parts.push(`${key} notin (${values})`);
    else parts.push(operator === "Exists" ? key : `!${key}`);
  }
  return parts.sort().join(",") || "<none>";
}

/** Columns with the containers and images of a pod template, for wide output. */
export function containers(path: string): Column[] {
  const of = (field: string) => (object: KubeObject) =>
    list(object, path)
      .map((container) => string(container, field))
      .join(",");
  return [
    { name: "Containers", priority: 1, cell: of("name") },
    { name: "Images", priority: 1, cell: of("image") },
  ];
}

/** A column with the label selector at a path, for wide output. */
export function selectorColumn(path: string): Column {
  return { name: "Selector", priority: 1, cell: (object) => selector(at(object, path)) };
}
