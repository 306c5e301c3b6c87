import { isFields } from "../../api/object.ts";
import { fault } from "../../api/status.ts";
import { below, type Check, type FieldRule, oneOf, present, relativePath, within } from "./field-rules.ts";
import { windowsOptionRules } from "./windows-rules.ts";

/** The largest number that an int32 can hold. */
export const largest = 2 ** 31 - 1;

/** The number of a user or group. */
export const id = within(0, largest);

/** A profile of the node is set for the type `Localhost`, and for no other. */
const localProfile =
  (what: string): Check =>
  (value, path) => {
    if (!isFields(value)) return [];
    const { type, localhostProfile: profile } = value;
    const where = `${path}.localhostProfile`;
    if (type === "Localhost")
      return profile ? [] : [fault.required(where, `must be set when ${what} type is Localhost`)];
    return profile === undefined || profile === null
      ? []
      : [
          fault.invalid(
            where,
            { Type: type, LocalhostProfile: profile },
            `can only be set when ${what} type is Localhost`,
          ),
        ];
  };

const profile = (name: string, what: string): FieldRule[] =>
  below(`securityContext.${name}`, [
    ["type", present(), oneOf(["Localhost", "RuntimeDefault", "Unconfined"])],
    ["", localProfile(what)],
  ]);

/** The longest name of an AppArmor profile in bytes: a path. */
const longestProfile = 4095;

const profileName: Check = (value, path) => {
  if (typeof value !== "string") return [];
  if (Buffer.byteLength(value) > longestProfile) return [fault.tooLong(path, longestProfile)];
  return value === value.trim() ? [] : [fault.invalid(path, value, "must not be padded with whitespace")];
};

/** The rules that the security contexts of a pod and of a container share. */
export const securityRules: readonly FieldRule[] = [
  ["securityContext.runAsUser", id],
  ["securityContext.runAsGroup", id],
  ...profile("seccompProfile", "seccomp"),
  ["securityContext.seccompProfile.localhostProfile", relativePath],
  ...profile("appArmorProfile", "AppArmor"),
  ["securityContext.appArmorProfile.localhostProfile", profileName],
  ...windowsOptionRules,
];
