/** One condition of a status, as `metav1.Condition` has it (apimachinery `pkg/apis/meta/v1/types.go`). */
export interface Condition {
  /** In CamelCase, one condition of a type: `Ready`. */
  type: string;
  status: "True" | "False" | "Unknown";
  /** Of the object's `metadata.generation` that the condition is about. */
  observedGeneration?: number;
  /** When `status` last changed: RFC 3339, whole seconds. */
  lastTransitionTime: string;
  /** Why, as one word in CamelCase. */
  reason: string;
  /** Why, for people; may be empty. */
  message: string;
}

/** A condition whose time follows from the one before it. */
export type NewCondition = Omit<Condition, "lastTransitionTime">;

/**
 * The conditions of a status after one of them is set. Conditions of other types stay as they are, and `lastTransitionTime`
 * moves with `status` alone. Gives the same array back where it says so already: then nothing need be written.
 *
 * @param conditions as the object has them; undefined: none
 * @param now the time of a transition; default: now
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  condition: NewCondition,
  now = new Date(),
): readonly Condition[] {
  const before = conditions?.find(({ type }) => type === condition.type);
  if (conditions && before && says(before, condition)) return conditions;
  const hasTurned = before?.status !== condition.status;
  const lastTransitionTime = hasTurned ? now.toISOString().replace(/\.\d+Z$/, "Z") : before.lastTransitionTime;
  const after = { ...condition, lastTransitionTime };
  if (!before) return [...(conditions ?? []), after];
  return (conditions ?? []).map((each) => (each === before ? after : each));
}

const says = (before: Condition, { status, reason, message, observedGeneration }: NewCondition): boolean =>
  before.status === status &&
  before.reason === reason &&
  before.message === message &&
  before.observedGeneration === observedGeneration;
