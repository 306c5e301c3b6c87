import { at, type Fields, fieldsOf, isFields } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { type Check, exactlyOneOf, type FieldRule, named, present, ruleFaults, selector } from "./field-rules.ts";
import { isAbove } from "./value-faults.ts";

/** The finalizer that every claim has, so that it stays while a pod uses it. */
export const claimFinalizer = "kubernetes.io/pvc-protection";

const accessModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/** An object that fills a new volume. */
const dataSource: Check = (value, path) => {
  if (!isFields(value)) return [];
  const { apiGroup, kind, name } = value;
  const faults = [...present()(name, `${path}.name`), ...present()(kind, `${path}.kind`)];
  if (apiGroup) return [...faults, ...named("subdomain")(apiGroup, `${path}.apiGroup`)];
  const why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
  return kind === "PersistentVolumeClaim" ? faults : [...faults, fault.invalid(path, kind ?? "", why)];
};

const claimRules: readonly FieldRule[] = [
  [
    "accessModes",
    (value, path) => {
      const modes: unknown[] = Array.isArray(value) ? value : [];
      if (new Set(modes).size > 1 && modes.includes("ReadWriteOncePod"))
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
  ["dataSource", dataSource],
  ["dataSourceRef", dataSource],
];

const isOwnSource = ({ apiGroup, kind }: Fields): boolean =>
  (!apiGroup && kind === "PersistentVolumeClaim") ||
  (apiGroup === "snapshot.storage.k8s.io" && kind === "VolumeSnapshot");

/** Drops the sources that the real server drops: of a kind that only `dataSourceRef` may have, or of another namespace. */
export function dropSources(spec: Fields): void {
  const { dataSource: source, dataSourceRef: reference } = spec;
  if (isFields(source) && !isOwnSource(source)) delete spec.dataSource;
  if (isFields(reference) && reference.namespace) delete spec.dataSourceRef;
  if (isFields(spec.dataSource)) spec.dataSourceRef ??= spec.dataSource;
  else if (isFields(spec.dataSourceRef) && isOwnSource(spec.dataSourceRef)) spec.dataSource = spec.dataSourceRef;
}

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
