import { pathText } from "./field-set.ts";
import type { Manager } from "./managers.ts";

/** A field to which an applied configuration gives another value than the manager that owns it. */
export interface Conflict {
  readonly manager: string;
  /** The owner as messages show it: `"kubectl" using v1`, `"x" with subresource "status" using v1`. */
  readonly owner: string;
  /** `.spec.containers[name="a"].image` */
  readonly fieldPath: string;
  /** The message of the Status cause, whose reason is FieldManagerConflict and whose field is the path. */
  readonly message: string;
}

/** Returns the conflicts with these managers; each manager's set holds only the conflicting fields. */
export function conflictsWith(managers: readonly Manager[]): Conflict[] {
  const ordered = managers
    .map((manager) => ({ manager, owner: ownerText(manager) }))
    .sort((left, right) => (left.owner < right.owner ? -1 : 1));
  return ordered.flatMap(({ manager, owner }) =>
    [...manager.fields.paths()].map((path) => ({
      manager: manager.name,
      owner,
      fieldPath: pathText(path),
      message: `conflict with ${owner}`,
    })),
  );
}

/** The message of the 409 Status. */
export function conflictMessage(conflicts: readonly Conflict[]): string {
  const [first] = conflicts;
  if (first && conflicts.length === 1) {
    return `Apply failed with 1 conflict: conflict with ${first.owner}: ${first.fieldPath}`;
  }
  const byOwner = Map.groupBy(conflicts, (conflict) => conflict.owner);
  const texts = [...byOwner].map(
    ([owner, fields]) => `conflicts with ${owner}:${fields.map(({ fieldPath }) => `\n- ${fieldPath}`).join("")}`,
  );
  return `Apply failed with ${conflicts.length} conflicts: ${texts.join("\n")}`;
}

function ownerText(manager: Manager): string {
  const name = JSON.stringify(manager.name);
  const through = manager.subresource && ` with subresource ${JSON.stringify(manager.subresource)}`;
  return manager.operation === "Apply" ? `${name}${through}` : `${name}${through} using ${manager.apiVersion}`;
}
