import { at, type Fields, fieldsOf, type KubeObject } from "../../api/object.ts";
import { type FieldFault, fault } from "../../api/status.ts";
import { relativePath } from "./field-rules.ts";
import { allContainers } from "./pod-spec.ts";

/** The annotation that named a container's profile before there was a field. The container's name follows. */
const prefix = "container.apparmor.security.beta.kubernetes.io/";

function profilesOf(annotations: unknown): (readonly [container: string, profile: unknown])[] {
  return Object.entries(fieldsOf(annotations))
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, profile]) => [key.slice(prefix.length), profile] as const);
}

/** The annotations that named the seccomp profile of a pod, and of a container, before there were fields. */
const seccomp =
  /^(seccomp\.security\.alpha\.kubernetes\.io\/pod$|container\.seccomp\.security\.alpha\.kubernetes\.io\/)/;
const seccompFile = "localhost/";

function seccompFaults(annotations: unknown, path: string): FieldFault[] {
  return Object.entries(fieldsOf(annotations)).flatMap(([key, value]) => {
    const profile = String(value);
    const where = `${path}.${key}`;
    if (!seccomp.test(key) || ["runtime/default", "docker/default", "unconfined"].includes(profile)) return [];
    if (profile.startsWith(seccompFile)) return relativePath(profile.slice(seccompFile.length), where);
    return [fault.invalid(where, profile, "must be a valid seccomp profile")];
  });
}

/** Faults of the AppArmor and seccomp annotations in the metadata at `path`, for the pod spec at `specPath`. */
export function profileFaults(object: unknown, path: string, specPath: string): FieldFault[] {
  const annotations = at(object, `${path}.annotations`);
  return [
    ...appArmorFaults(annotations, `${path}.annotations`, fieldsOf(at(object, specPath))),
    ...seccompFaults(annotations, `${path}.annotations`),
  ];
}

function appArmorFaults(annotations: unknown, path: string, spec: Fields): FieldFault[] {
  const names = allContainers(spec, "").map(([{ name }]) => name);
  return profilesOf(annotations).flatMap(([container, profile]) => {
    const where = `${path}[${prefix}${container}]`;
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
