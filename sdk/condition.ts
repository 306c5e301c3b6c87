/** One condition of a status, as in `metav1.Condition` (apimachinery `pkg/apis/meta/v1/types.go`). */
export interface Condition {
  /** Type in CamelCase, unique among the conditions: `Ready`. */
  type: string;
  status: "True" | "False" | "Unknown";
  /** The object's `metadata.generation` that the condition refers to. */
  observedGeneration?: number;
  /** When `status` last changed: RFC 3339, whole seconds. */
  lastTransitionTime: string;
  /** Reason, as one word in CamelCase. */
  reason: string;
  /** Explanation for people; may be empty. */
  message: string;
}

/** A condition whose transition time is derived from the previous one. */
export type NewCondition = Omit<Condition, "lastTransitionTime">;

/**
 * Returns the conditions of a status with one of them set. Conditions of other types stay unchanged, and `lastTransitionTime`
 * changes only with `status`. Returns the same array if nothing changes, in which case nothing needs to be written.
 *
 * @param conditions the object's conditions; undefined: empty
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
