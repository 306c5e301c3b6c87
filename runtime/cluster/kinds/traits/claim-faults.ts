import { at, fieldsOf } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { exactlyOneOf, type FieldRule, named, ruleFaults, selector } from "./field-rules.ts";
import { isAbove } from "./value-faults.ts";

/** The finalizer that every claim has, so that it stays while a pod uses it. */
export const claimFinalizer = "kubernetes.io/pvc-protection";

const accessModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

const claimRules: readonly FieldRule[] = [
  [
    "accessModes",
    (value, path) => {
      const modes: unknown[] = Array.isArray(value) ? value : [];
      if (modes.length > 1 && modes.includes("ReadWriteOncePod"))
        return [fault.forbidden(path, "may not use ReadWriteOncePod with other access modes")];
      return modes
        .filter((mode) => !accessModes.includes(String(mode)))
        .map((mode) => fault.unsupported(path, mode, accessModes));
    },
  ],
  ["storageClassName", named("subdomain")],
  ["volumeMode", exactlyOneOf(["Block", "Filesystem"])],
  ["volumeAttributesClassName", named("subdomain")],
  ["selector", selector],
];

/** Faults of a claim whose spec is at that path. */
export function claimFaults(object: unknown, path: string): FieldFault[] {
  const spec = fieldsOf(fieldsOf(object).spec);
  const modes = spec.accessModes;
  const storage = at(spec, "resources.requests.storage");
  const where = `${path}.resources[storage]`;
  return [
    ...ruleFaults(claimRules, spec, path),
    ...(Array.isArray(modes) && modes.length > 0
      ? []
      : [fault.required(`${path}.accessModes`, "at least 1 access mode is required")]),
    ...(storage === undefined ? [fault.required(where)] : []),
    ...(storage === undefined || isAbove(storage, "0")
      ? []
      : [fault.invalid(where, storage, "must be greater than zero")]),
  ];
}
