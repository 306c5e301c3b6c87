import { at, fieldsOf, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { items } from "./pod-spec.ts";

/** The annotation that named a container's profile before there was a field. The container's name follows. */
const prefix = "container.apparmor.security.beta.kubernetes.io/";

function profilesOf(annotations: unknown): (readonly [container: string, profile: unknown])[] {
  return Object.entries(fieldsOf(annotations))
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, profile]) => [key.slice(prefix.length), profile] as const);
}

/** Faults of the AppArmor annotations in the metadata at `path`, for the pod spec at `specPath`. */
export function appArmorFaults(object: unknown, path: string, specPath: string): FieldFault[] {
  const spec = fieldsOf(at(object, specPath));
  const names = ["containers", "initContainers"].flatMap((list) => items(spec, list).map(({ name }) => name));
  return profilesOf(at(object, `${path}.annotations`)).flatMap(([container, profile]) => {
    const where = `${path}.annotations[${prefix}${container}]`;
    const isKnown = /^(runtime\/default|unconfined|localhost\/.*)$/.test(String(profile));
    return [
      ...(names.includes(container) ? [] : [fault.invalid(where, container, "container not found")]),
      ...(isKnown ? [] : [fault.invalid(where, profile, `invalid AppArmor profile name: ${JSON.stringify(profile)}`)]),
    ];
  });
}

/** Warnings of a pod about its AppArmor annotations, as a real API server sends them. */
export function appArmorWarnings({ metadata }: KubeObject): string[] {
  return profilesOf(metadata.annotations).map(
    ([container]) =>
      `metadata.annotations[${prefix}${container}]: deprecated since v1.30; use the "appArmorProfile" field instead`,
  );
}
