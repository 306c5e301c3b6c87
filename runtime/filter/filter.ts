import type { Place } from "../errors.ts";
import type { ChangeType, Trigger } from "../manifest/function.ts";
import { FieldsDigest } from "./changed-fields.ts";
import { type ConditionError, celValue, MatchConditions } from "./conditions.ts";

/** What is known of the object before the change that is judged. */
export interface Before {
  /** Digest of the changed fields; undefined where the object was unknown. */
  readonly hash: string | undefined;
  /** Its conditions' answer then; undefined where the object was unknown. */
  readonly matched: boolean | undefined;
  /** A handler may have been told of a later state than what is known. */
  readonly doubted: boolean;
}

export interface Verdict {
  /** Whether the handler is to see the change. */
  readonly deliver: boolean;
  /** To be kept with the object. */
  readonly hash: string;
  readonly matched: boolean;
}

/** The part of a trigger that a filter is made from. */
export type FilterRules = Pick<Trigger, "events" | "changedFields" | "matchConditions" | "lastBody">;

/**
 * One trigger's filters. A body is parsed at most once, and only where a rule needs it. An object that matched and no
 * longer does is filtered out like any other: conditions choose events, selectors choose objects.
 */
export class Filter {
  /** Whether a verdict needs the object's previous body. */
  readonly needsOldBody: boolean;
  private readonly rules: FilterRules;
  /** Of the changed fields; undefined where none are named. */
  private readonly digest: FieldsDigest | undefined;
  /** Whether a Deleted may have to be judged by the conditions' last answer, because no body is kept. */
  private readonly remembersMatch: boolean;
  private readonly conditions: MatchConditions;
  private readonly onError: (error: ConditionError) => void;

  /** Throws a fault at `place` for a condition that does not compile. `onError` hears of one that cannot be evaluated. */
  constructor(rules: FilterRules, onError: (error: ConditionError) => void = () => {}, place?: Place) {
    this.rules = rules;
    if (rules.changedFields.length > 0) this.digest = new FieldsDigest(rules.changedFields);
    this.conditions = new MatchConditions(rules.matchConditions, place);
    this.needsOldBody = this.conditions.usesOldObject;
    this.remembersMatch = rules.lastBody === "Metadata" && rules.events.includes("Deleted");
    this.onError = onError;
  }

  /** Whether a digest says nothing, because it is of other fields: then the previous body is needed, if it is kept whole. */
  isOutdated(hash: string): boolean {
    return this.digest !== undefined && this.rules.lastBody === "Full" && !this.digest.made(hash);
  }

  /** `lastKnown`: the body is not the change's own but the last one kept, perhaps its metadata alone. */
  judge(type: ChangeType, body: Buffer, before: Before, oldBody: Buffer | undefined, lastKnown: boolean): Verdict {
    const wanted = this.rules.events.includes(type);
    if (lastKnown && (this.rules.lastBody === "Metadata" || before.matched === undefined)) {
      const matched = before.matched ?? true;
      return { deliver: wanted && matched, hash: "", matched };
    }
    const { digest } = this;
    const conditional = this.conditions.count > 0 && (wanted || this.remembersMatch);
    if (!digest && !conditional) return { deliver: wanted, hash: "", matched: true };
    const json = body.toString();
    const object: unknown = JSON.parse(json);
    const hash = digest?.of(json, object) ?? "";
    const unchanged = type === "Modified" && digest !== undefined && this.hashBefore(before, oldBody) === hash;
    const matched = !conditional || this.matches(object, type, before, oldBody);
    return { deliver: wanted && !unchanged && matched, hash, matched };
  }

  private hashBefore({ hash, doubted }: Before, oldBody: Buffer | undefined): string | undefined {
    if (doubted || hash === undefined || !this.isOutdated(hash)) return hash;
    return oldBody && this.digest?.of(oldBody.toString());
  }

  private matches(object: unknown, type: ChangeType, before: Before, oldBody: Buffer | undefined): boolean {
    const added = type === "Added";
    const oldObject = this.needsOldBody && oldBody && !added ? celValue(JSON.parse(oldBody.toString())) : null;
    // What it should be compared with is not known: what compares does not keep it from being told.
    const which = before.doubted && !added ? "of-object-alone" : "all";
    return this.conditions.match(celValue(object), oldObject, this.onError, which);
  }
}
